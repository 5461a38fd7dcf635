// Everything that one cell's file says in numbers: its own section of the report.

import { energyScope, otherScopeLines } from '../../analysis/energy-words.ts';
import {
  type BoardControl,
  type BoardEvidence,
  type CapBinding,
  type LatencySummary,
  offerText,
} from '../../core/index.ts';
import { count, duration, NOT_DEFINED, number, percent, setting, withBound, withUnit } from '../format.ts';
import type { CellView } from '../model.ts';
import { energyAbsent, energyPerToken } from '../words.ts';
import { loadKindPairs } from './load-kind.ts';
import { ENERGY_SCOPE, left, type Row, right, type Table } from './table.ts';

function latencyRow(name: string, summary: LatencySummary): Row {
  const { p50Ms, p90Ms, p95Ms, p99Ms, p99LoadgenMs, maxMs, meanMs } = summary;
  const numbers = [meanMs, p50Ms, p90Ms, p95Ms, p99Ms, p99LoadgenMs, maxMs].map((value) => number(value));
  return { cells: [name, count(summary.n), count(summary.infinite), ...numbers, summary.small ? 'small' : ''] };
}

export function latencyTable(view: CellView): Table {
  const { ttft, tpot, itl, e2e, sendLag, ttftFromDispatch, ttftCompleted, tpotCompleted, firstVisible } =
    view.cell.metrics;
  return {
    title: 'Latency in ms, over the requests that arrived in the window',
    columns: [
      left('metric'),
      right('n'),
      right('never completed'),
      ...['mean', 'p50', 'p90', 'p95', 'p99', 'p99 (LoadGen rank)', 'max'].map(right),
      left('label'),
    ],
    rows: [
      latencyRow('TTFT', ttft),
      latencyRow('TPOT', tpot),
      ...(ttft.infinite > 0
        ? [latencyRow('TTFT, completed only', ttftCompleted), latencyRow('TPOT, completed only', tpotCompleted)]
        : []),
      ...(firstVisible.n > 0 && firstVisible.meanMs !== ttftCompleted.meanMs
        ? [latencyRow('first visible text (no SLO)', firstVisible)]
        : []),
      latencyRow('ITL (no SLO)', itl),
      latencyRow('E2E', e2e),
      latencyRow('TTFT from dispatch', ttftFromDispatch),
      latencyRow('send lag', sendLag),
    ],
    notes: [
      'Nearest rank; means leave out what never completed. small: fewer than 662 members, so the p99 rests on few requests.',
    ],
  };
}

type Pair = readonly [string, string];

function workPairs(view: CellView): Pair[] {
  const { metrics: m, load, status, statusReason, key } = view.cell;
  return [
    ['status', statusReason === null ? status : `${status}: ${statusReason}`],
    [
      'load',
      `${load.kind}, ${offerText(load)}, ${count(load.promptTokens)} prompt and ${count(load.outputTokens)} output tokens`,
    ],
    ['window', withUnit(m.windowS, 's')],
    ['mean in flight', number(m.meanInFlight)],
    ...loadKindPairs(view.cell),
    ['attempt', count(key.attempt)],
    ['arrivals in the window', `${count(m.arrivals)}, ${count(m.dispatched)} dispatched`],
    [
      'states',
      `${count(m.states.completed)} completed, ${count(m.states.truncated)} truncated, ${count(m.states.failed)} failed, ${count(m.states.running)} still running at the drain limit`,
    ],
    ['attained', `${count(m.attained)} (${percent(m.attainment)})`],
    [
      'offered / dispatched / completed',
      `${number(m.offeredReqPerS)} / ${number(m.dispatchedReqPerS)} / ${number(m.completedReqPerS)} req/s`,
    ],
    ['goodput', `${withUnit(m.goodputTokPerS, 'tok/s')}, ${withUnit(m.goodputReqPerS, 'req/s')}`],
    [
      'throughput',
      `${withUnit(m.throughputTokPerS, 'tok/s')}, in its busiest second ${withUnit(m.peakThroughputTokPerS, 'tok/s')}`,
    ],
    ['output tokens in the window', `${count(m.outputTokens)}, of attained requests ${count(m.goodTokens)}`],
    ['edge imbalance', percent(m.edgeImbalance, 2)],
    ['events that shared a read', percent(m.coalescedShare, 2)],
    ...(m.singleTokenRequests > 0
      ? [['requests of one token', `${count(m.singleTokenRequests)} (no TPOT)`] as const]
      : []),
  ];
}

function energyPairs(view: CellView): Pair[] {
  const { cell } = view;
  const { energy: e, achievedSmClockMhz } = cell.metrics;
  if (e === null) return [['energy', energyAbsent(cell)]];
  const w = cell.windowEnergy;
  return [
    ['energy of the window', withBound(e.energyJ, e.boundJ, 'J')],
    ['scope', energyScope(cell)],
    ['mean power', withBound(e.meanPowerW, e.boundJ / cell.metrics.windowS, 'W')],
    ['energy per output token', energyPerToken(cell)],
    ['energy per good token', withBound(e.jPerGoodToken, e.jPerGoodTokenBound, 'J/token')],
    ['good tokens per joule', number(e.goodTokensPerJoule, 4)],
    ['energy per prompt and output token', withBound(e.jPerTotalToken, e.jPerTotalTokenBound, 'J/token')],
    ['above the idle of the loaded server', withBound(e.marginalJPerToken, e.marginalJPerTokenBound, 'J/token')],
    ['above the idle of the bare board', withBound(e.aboveBareJPerToken, e.aboveBareJPerTokenBound, 'J/token')],
    [
      'idle power loaded / bare',
      `${withBound(e.idleLoadedW, e.idleLoadedBoundW, 'W', 'not measured')} / ${withBound(e.idleBareW, e.idleBareBoundW, 'W', 'not measured')}`,
    ],
    ['achieved SM clock', withUnit(achievedSmClockMhz, 'MHz', 4)],
    ...(w === null
      ? []
      : ([
          ['counter change points', count(w.changePoints)],
          [
            'trapezoid of power (cross-check)',
            `${withUnit(w.trapezoidJ, 'J', 4)}, field ${w.powerField ?? 'none'}, disagreement ${percent(w.disagreement, 2)}`,
          ],
          ['raw linear reading (comparison)', withUnit(w.rawLinearJ, 'J', 4)],
          ['sample gaps', `longest ${duration(w.maxGapNs)}, coverage ${percent(w.coverage, 2)}`],
        ] as const)),
  ];
}

function controlPairs(view: CellView): Pair[] {
  const { requestedLockMhz, targetLockMhz, requestedCapW, boards } = view.cell.control;
  const ofEach = (pick: (board: BoardControl) => number | null, otherwise: string) =>
    [...new Set(boards.map((board) => withUnit(pick(board), 'W', 4, otherwise)))].join(' and ') || otherwise;
  const lock =
    requestedLockMhz === null
      ? 'none'
      : `${setting(requestedLockMhz)} MHz asked, ${withUnit(targetLockMhz, 'MHz', 4, 'nothing')} set`;
  const cap =
    requestedCapW === null
      ? 'none'
      : `${setting(requestedCapW)} W asked, ${ofEach(({ enforcedLimitW }) => enforcedLimitW, 'nothing')} read back`;
  const limitKnown = boards.some(({ defaultLimitW }) => defaultLimitW !== null);
  return [
    ['clock lock', lock],
    ['power cap', limitKnown ? `${cap} (default limit ${ofEach((board) => board.defaultLimitW, 'unknown')})` : cap],
  ];
}

/** What the samples say of clocks, reasons and limits inside the window. */
function boardPairs(view: CellView): Pair[] {
  const { boards } = view.cell;
  return boards.flatMap((board, number) =>
    pairsOfBoard(board).map(([what, value]): Pair => [boards.length === 1 ? what : `board ${number}: ${what}`, value]),
  );
}

function pairsOfBoard(board: BoardEvidence): Pair[] {
  const { busySmClock: clock, busySamples, reasonShares, capBinding, capTimeShare, enforcedLimitW: limit } = board;
  const reasons = Object.entries(reasonShares).map(([name, share]) => `${name} ${percent(share)}`);
  return [
    [
      'SM clock while busy',
      clock === null
        ? NOT_DEFINED
        : `median ${setting(clock.p50Mhz)}, p5 to p95 ${setting(clock.p5Mhz)} to ${setting(clock.p95Mhz)}, all ${setting(clock.minMhz)} to ${setting(clock.maxMhz)} MHz; ${count(busySamples)} samples`,
    ],
    ['clock event reasons, share of samples', reasons.length === 0 ? 'none' : reasons.join(', ')],
    [
      'power limit held the clock down',
      `${bound(capBinding.prefill)} with a request waiting for its first token, ${bound(capBinding.decode)} with tokens alone`,
    ],
    ['time under the power limit, by the board’s counter', capTimeShare === null ? NOT_DEFINED : percent(capTimeShare)],
    [
      'enforced limit',
      limit === null
        ? NOT_DEFINED
        : `${setting(limit.start)} W at the start, ${setting(limit.end)} W at the end, ${setting(limit.min)} to ${setting(limit.max)} W between`,
    ],
  ];
}

const bound = ({ samples, bindingShare }: CapBinding): string =>
  bindingShare === null ? 'no sample' : `${percent(bindingShare)} of ${count(samples)} samples`;

function costPairs(view: CellView): Pair[] {
  const { cost } = view.cell.metrics;
  if (cost === null) return [];
  return [
    [
      'cost',
      `${withUnit(cost.dollarsPerMtok, '$ per million good tokens')} at ${setting(cost.pricePerHour)} $ per hour`,
    ],
    ['good tokens per $', number(cost.goodTokensPerDollar, 4)],
  ];
}

/** What the cell measured beside latency, as pairs. */
export function numbersTable(view: CellView): Table {
  const control = view.cell.gpu.kind === 'none' ? [] : [...controlPairs(view), ...boardPairs(view)];
  const beside = otherScopeLines(view.cell).map((text): Pair => ['beside the boards', text]);
  const pairs = [...workPairs(view), ...energyPairs(view), ...beside, ...control, ...costPairs(view)];
  return {
    title: 'Work and energy',
    columns: [left('what'), left('value')],
    rows: pairs.map(([what, value]): Row => ({ cells: [what, value === '' ? NOT_DEFINED : value] })),
    notes: [ENERGY_SCOPE],
  };
}
