// The standing texts of a report: what each number means, what is not measured, how to check it. METHOD in plain words.

export interface Term {
  readonly name: string;
  readonly text: string;
}

export const FORMULAS: readonly Term[] = [
  {
    name: 'TTFT',
    text: 'time to first token: receipt of the first event that carries output tokens, minus the arrival that the schedule asked for. A late dispatch counts against the result (no coordinated omission).',
  },
  {
    name: 'TPOT',
    text: 'time per output token: last token event minus first token event, divided by output tokens minus one. Undefined for one token.',
  },
  {
    name: 'p99',
    text: 'nearest rank over the requests that arrived in the window; a request that did not complete counts as infinite. LoadGen reads one rank higher where n times p is whole: shown for comparison only.',
  },
  {
    name: 'keeps the promise',
    text: 'p99 TTFT and p99 TPOT are both within their limits. Attained requests meet both limits each; their share is reported beside it.',
  },
  {
    name: 'goodput',
    text: 'tokens whose events fell into the window and belong to attained requests, divided by the length of the window.',
  },
  {
    name: 'J/token',
    text: 'energy of the window divided by all output tokens whose events fell into it. Energy is the difference of the cumulative energy counter of the board between the two edges, interpolated between changes of the counter.',
  },
  {
    name: '± bound',
    text: 'how far the energy of the window can be off because the counter moves in steps and is read at intervals. It is a bound on the reading, not a confidence interval between launches.',
  },
];

export const NOT_MEASURED: readonly string[] = [
  'Energy is that of the GPU board alone: host CPU, memory, network, cooling and PUE are excluded.',
  'The board measures itself; sensors of this kind can be off by about 5 % in absolute terms. Ratios on the same board are not affected by a constant factor.',
  'Requests inside a cell are not repeats of an experiment: spread between launches shows only with several repeats, and this report draws no verdict from it.',
  'Quality of the generated text is not judged.',
];

export const REDERIVE: readonly string[] = [
  'tokbench verify DIR recomputes every stored number from the raw records and checks every checksum; DIR is the folder of this run.',
  'Raw records: requests.parquet, events.parquet and gpu.parquet of each cell open in DuckDB and pandas as they are. This report shows only what cell.json, launch.json and manifest.json hold; figures are drawn from the raw records.',
];

/** Why the reader sees no verdict. */
export function verdictLine(repeats: number): string {
  return repeats === 1
    ? '1 repeat: no verdict; ratios only.'
    : `${repeats} repeats: no verdict is drawn in this report; ratios only.`;
}
