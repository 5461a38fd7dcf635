// Readings of an external meter out of its CSV file: a column with the wall-clock time and one with the power.

const TIME = /^(time|timestamp|date|datetime|epoch)(?!zone)/i;
const POWER = /^(active[ _])?(power|watt)|[([](m|k)?(w|watts?)[)\]]$|[_ ](m|k)?w$/i;
/** Columns that speak of power and hold none: cos phi, a limit, reactive and apparent power, energy. */
const NO_POWER = /factor|limit|cap\b|reactive|apparent|energy|[_ ([]k?va(r)?\b|wh\b/i;
/**
 * The unit at the end of a column's name, and how many watts it is. A megawatt is not what a meter of one machine reads, so
 * `mW` and `MW` mean the same here.
 */
const UNITS: readonly (readonly [RegExp, number])[] = [
  [/(^|[_ ([])kw[)\]]?$/i, 1000],
  [/(^|[_ ([])mw[)\]]?$/i, 0.001],
];
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const DECIMAL_COMMA = /^([+-]?\d+),(\d+)$/;
/** Seconds since 1970 stay below this until the year 5138; larger numbers are milliseconds. */
const MAX_EPOCH_S = 1e11;

export interface MeterReading {
  readonly wallMs: number;
  readonly watts: number;
}

export interface MeterReadings {
  /** The power column's name; empty when the file has none. */
  readonly column: string;
  readonly readings: readonly MeterReading[];
}

/**
 * Rows that are whole and hold two numbers, in time order. Left out are a torn last line (the meter is writing) and rows
 * with more cells than the header: a decimal comma in a file whose separator is a comma would be read as something else.
 */
export function meterReadings(text: string): MeterReadings {
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split(/\r?\n/);
  const [head = '', ...rows] = /^\uFEFF?sep=/i.test(lines[0]!) ? lines.slice(1) : lines;
  const separator = [';', '\t'].find((candidate) => head.includes(candidate)) ?? ',';
  const names = cellsOf(head.replace(/^\uFEFF/, ''), separator);
  const [time, power] = [names.findIndex((name) => TIME.test(name)), names.findIndex(isPower)];
  if (time < 0 || power < 0) return { column: '', readings: [] };
  const factor = UNITS.find(([unit]) => unit.test(names[power]!))?.[1] ?? 1;
  const readings = rows.flatMap((row) => {
    const cells = cellsOf(row, separator);
    if (cells.slice(names.length).some((cell) => cell !== '')) return [];
    const [wallMs, watts] = [wallMsOf(cells[time] ?? ''), numberOf(cells[power] ?? '') * factor];
    return Number.isFinite(wallMs) && Number.isFinite(watts) && watts >= 0 ? [{ wallMs, watts }] : [];
  });
  return { column: names[power]!, readings: readings.sort((a, b) => a.wallMs - b.wallMs) };
}

const isPower = (name: string): boolean => POWER.test(name) && !NO_POWER.test(name);

/** Cells of one line; a separator between quotes is part of its cell. */
function cellsOf(line: string, separator: string): string[] {
  const cells = [''];
  let quoted = false;
  for (const char of line) {
    if (char === '"') quoted = !quoted;
    else if (char === separator && !quoted) cells.push('');
    else cells[cells.length - 1] += char;
  }
  return cells.map((cell) => cell.trim());
}

function numberOf(text: string): number {
  const plain = text.replace(DECIMAL_COMMA, '$1.$2');
  return NUMBER.test(plain) ? Number(plain) : Number.NaN;
}

/** Seconds or milliseconds since 1970, or a date with its zone; one without a zone is no instant. */
function wallMsOf(text: string): number {
  const plain = text.replace(DECIMAL_COMMA, '$1.$2');
  if (/^\d+(\.\d+)?$/.test(plain)) return Number(plain) < MAX_EPOCH_S ? Number(plain) * 1000 : Number(plain);
  if (!/(Z|[+-]\d\d:?\d\d)$/.test(text)) return Number.NaN;
  const [day = '', ...rest] = text.split(/[ T]/);
  return Date.parse(`${day}T${rest.join('').replace(',', '.')}`);
}
