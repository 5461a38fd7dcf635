// JSON with infinities: a latency may be +Infinity (a miss), which plain JSON would turn into null.

/** Stable, readable JSON text with a final newline. Non-finite numbers become the strings "Infinity", "-Infinity". */
export function toJson(value: unknown): string {
  const text = JSON.stringify(
    value,
    (_key, item) => {
      if (item === Number.POSITIVE_INFINITY) return 'Infinity';
      if (item === Number.NEGATIVE_INFINITY) return '-Infinity';
      return item;
    },
    2,
  );
  return `${text}\n`;
}

export function fromJson(text: string): unknown {
  return JSON.parse(text, (_key, item) => {
    if (item === 'Infinity') return Number.POSITIVE_INFINITY;
    if (item === '-Infinity') return Number.NEGATIVE_INFINITY;
    return item;
  });
}
