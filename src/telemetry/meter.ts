// Readings of an external meter out of its CSV file: a column with the wall-clock time and one with the power.

const TIME = /^(time|timestamp|date|datetime|epoch)/i;
const POWER = /^(power|watt)|\((w|watts?)\)$|[_ ]w$/i;
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

/** Rows that are whole and hold two numbers, in time order; a torn last line (the meter is writing) is left out. */
export function meterReadings(text: string): MeterReadings {
  const [head = '', ...lines] = text.slice(0, text.lastIndexOf('\n') + 1).split(/\r?\n/);
  const separator = head.includes(';') ? ';' : ',';
  const names = head.split(separator).map((name) =>
    name
      .trim()
      .replace(/^\uFEFF/, '')
      .replace(/^"(.*)"$/, '$1'),
  );
  const [time, power] = [names.findIndex((name) => TIME.test(name)), names.findIndex((name) => POWER.test(name))];
  if (time < 0 || power < 0) return { column: '', readings: [] };
  const readings = lines.flatMap((line) => {
    const cells = line.split(separator).map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'));
    const wallMs = wallMsOf(cells[time] ?? '');
    const watts = cells[power] ? Number(cells[power]) : Number.NaN;
    return Number.isFinite(wallMs) && Number.isFinite(watts) && watts >= 0 ? [{ wallMs, watts }] : [];
  });
  return { column: names[power]!, readings: readings.sort((a, b) => a.wallMs - b.wallMs) };
}

/** Seconds or milliseconds since 1970, or a date with its zone; one without a zone is no instant. */
function wallMsOf(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) < MAX_EPOCH_S ? Number(text) * 1000 : Number(text);
  return /(Z|[+-]\d\d:?\d\d)$/.test(text) ? Date.parse(text.replace(' ', 'T')) : Number.NaN;
}
