// Counters, gauges and histograms in the text form that Python's client library writes, number format included.

export type Labels = Readonly<Record<string, string>>;

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Upper bounds without +Inf, for histograms. */
  readonly buckets?: readonly number[];
}

/** A double as Python's client prints it: `1.0`, `0.25`, `1.048576e+06`, `+Inf`. */
export function formatValue(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const text = Number.isInteger(value) ? `${value}.0` : String(value).replace(/e([+-])(\d)$/, 'e$10$2');
  const dot = text.indexOf('.');
  if (value <= 0 || dot <= 6 || text.includes('e')) return text;
  const mantissa = `${text[0]}.${text.slice(1, dot)}${text.slice(dot + 1)}`.replace(/[0.]+$/, '');
  return `${mantissa}e+${String(dot - 1).padStart(2, '0')}`;
}

function labelText(labels: Labels): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  const quoted = sorted.map(([name, value]) => `${name}="${value.replace(/[\\"\n]/g, escapeLabel)}"`);
  return quoted.length === 0 ? '' : `{${quoted.join(',')}}`;
}

function escapeLabel(character: string): string {
  return character === '\n' ? '\\n' : `\\${character}`;
}

/** One labelled series of a family. */
export class Series {
  readonly labels: Labels;
  readonly #buckets: readonly number[];
  readonly #counts: number[];
  #value = 0;
  #observations = 0;

  constructor(labels: Labels, buckets: readonly number[]) {
    this.labels = labels;
    this.#buckets = buckets;
    this.#counts = buckets.map(() => 0);
  }

  inc(by = 1): void {
    this.#value += by;
  }

  set(value: number): void {
    this.#value = value;
  }

  observe(value: number): void {
    this.#value += value;
    this.#observations += 1;
    const bucket = this.#buckets.findIndex((bound) => value <= bound);
    if (bucket >= 0) this.#counts[bucket]! += 1;
  }

  lines(name: string, histogram: boolean): string[] {
    if (!histogram) return [`${name}${labelText(this.labels)} ${formatValue(this.#value)}`];
    let cumulative = 0;
    const lines = this.#buckets.map((bound, index) => {
      cumulative += this.#counts[index]!;
      return this.#bucketLine(name, formatValue(bound), cumulative);
    });
    lines.push(this.#bucketLine(name, '+Inf', this.#observations));
    const own = labelText(this.labels);
    lines.push(
      `${name}_count${own} ${formatValue(this.#observations)}`,
      `${name}_sum${own} ${formatValue(this.#value)}`,
    );
    return lines;
  }

  #bucketLine(name: string, le: string, count: number): string {
    return `${name}_bucket${labelText({ ...this.labels, le })} ${formatValue(count)}`;
  }
}

/** Families in the order of their declaration. */
export class MetricRegistry {
  readonly #createdS: number;
  readonly #families: { readonly family: Family; readonly series: readonly Series[] }[] = [];

  /** `createdS`: seconds since the epoch, for the `_created` gauges. */
  constructor(createdS: number) {
    this.#createdS = createdS;
  }

  /** Declares a family with one series per label set; they appear at once, at 0. */
  family(family: Family, labelSets: readonly Labels[]): readonly Series[] {
    const series = labelSets.map((labels) => new Series(labels, family.buckets ?? []));
    this.#families.push({ family, series });
    return series;
  }

  text(): string {
    return `${this.#families.flatMap((entry) => this.#familyLines(entry.family, entry.series)).join('\n')}\n`;
  }

  #familyLines({ name, help, type }: Family, series: readonly Series[]): string[] {
    const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
    lines.push(...series.flatMap((one) => one.lines(name, type === 'histogram')));
    if (type === 'gauge' || name.startsWith('process_')) return lines;
    const created = `${name.replace(/_total$/, type === 'counter' ? '' : '_total')}_created`;
    lines.push(`# HELP ${created} ${help}`, `# TYPE ${created} gauge`);
    lines.push(...series.map(({ labels }) => `${created}${labelText(labels)} ${formatValue(this.#createdS)}`));
    return lines;
  }
}
