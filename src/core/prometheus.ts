// Reads the text of a /metrics page: classic Prometheus text and OpenMetrics alike.

const NAME = /[a-zA-Z_:][a-zA-Z0-9_:]*/y;
const LABEL_NAME = /[a-zA-Z_][a-zA-Z0-9_]*/y;
const BLANKS = /[ \t]*/y;
const WORD = /[^ \t#]+/y;

interface Scanned<T> {
  readonly value: T;
  /** Position after what was read. */
  readonly at: number;
}

/**
 * Values of a /metrics page by series: the name, and behind it the labels in alphabetical order, as in
 * `vllm:num_requests_running{engine="0",model_name="bench"}`. Comments, timestamps and exemplars are left out, a line
 * that is no sample is skipped, and of a series that appears twice the last value counts. `NaN` and `+Inf` are kept.
 */
export function parsePrometheus(text: string): Map<string, number> {
  const values = new Map<string, number>();
  for (const line of text.split('\n')) {
    const sample = parseSample(line);
    if (sample !== null) values.set(sample.series, sample.value);
  }
  return values;
}

/**
 * Sum of one series over all its labels (engines of a data-parallel server, finish reasons).
 * @returns null when the page lacks the series or all its values are NaN: unavailable is never 0
 */
export function sumSeries(values: ReadonlyMap<string, number>, name: string): number | null {
  let sum: number | null = null;
  for (const [series, value] of values) {
    if (nameOf(series) === name && !Number.isNaN(value)) sum = (sum ?? 0) + value;
  }
  return sum;
}

/** The name of a series without its labels. */
export function nameOf(series: string): string {
  const brace = series.indexOf('{');
  return brace < 0 ? series : series.slice(0, brace);
}

/** The labels of a series key as `parsePrometheus` writes it. */
export function labelsOf(series: string): ReadonlyMap<string, string> {
  const brace = series.indexOf('{');
  return new Map(brace < 0 ? [] : scanLabels(series, brace)?.value);
}

function parseSample(line: string): { series: string; value: number } | null {
  const start = skipBlanks(line, 0);
  if (start === line.length || line[start] === '#') return null;
  const name = match(NAME, line, start);
  if (name === null) return null;
  let at = skipBlanks(line, start + name.length);
  let labels: readonly (readonly [string, string])[] = [];
  if (line[at] === '{') {
    const scanned = scanLabels(line, at);
    if (scanned === null) return null;
    labels = scanned.value;
    at = skipBlanks(line, scanned.at);
  }
  const word = match(WORD, line, at);
  const value = word === null ? null : parseValue(word.trimEnd());
  return value === null ? null : { series: seriesKey(name, labels), value };
}

/** `{a="b",c="d",}` from the opening brace on; null when it is not well formed. */
function scanLabels(line: string, from: number): Scanned<(readonly [string, string])[]> | null {
  const labels: (readonly [string, string])[] = [];
  let at = skipBlanks(line, from + 1);
  while (line[at] !== '}') {
    const name = match(LABEL_NAME, line, at);
    if (name === null) return null;
    at = skipBlanks(line, at + name.length);
    if (line[at] !== '=') return null;
    at = skipBlanks(line, at + 1);
    const text = line[at] === '"' ? scanQuoted(line, at) : null;
    if (text === null) return null;
    labels.push([name, text.value]);
    at = skipBlanks(line, text.at);
    if (line[at] === ',') at = skipBlanks(line, at + 1);
    else if (line[at] !== '}') return null;
  }
  return { value: labels, at: at + 1 };
}

function scanQuoted(line: string, from: number): Scanned<string> | null {
  let value = '';
  for (let at = from + 1; at < line.length; at++) {
    const char = line[at]!;
    if (char === '"') return { value, at: at + 1 };
    if (char !== '\\') {
      value += char;
      continue;
    }
    at++;
    const escaped = line[at];
    if (escaped === undefined) return null;
    value += escaped === 'n' ? '\n' : escaped === '"' || escaped === '\\' ? escaped : `\\${escaped}`;
  }
  return null;
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' };

function seriesKey(name: string, labels: readonly (readonly [string, string])[]): string {
  if (labels.length === 0) return name;
  const sorted = labels.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const quoted = sorted.map(([key, value]) => `${key}="${value.replace(/[\\"\n]/g, (char) => ESCAPES[char]!)}"`);
  return `${name}{${quoted.join(',')}}`;
}

/** A sample's value; null for a word that is no number. */
function parseValue(word: string): number | null {
  const lower = word.toLowerCase();
  if (lower === 'nan') return Number.NaN;
  if (/^[+]?inf(inity)?$/.test(lower)) return Number.POSITIVE_INFINITY;
  if (/^-inf(inity)?$/.test(lower)) return Number.NEGATIVE_INFINITY;
  const value = Number(word);
  return Number.isNaN(value) ? null : value;
}

function match(pattern: RegExp, line: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(line)?.[0] ?? null;
}

function skipBlanks(line: string, at: number): number {
  return at + match(BLANKS, line, at)!.length;
}
