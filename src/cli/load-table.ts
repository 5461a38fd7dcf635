// One load as a person reads it: latency percentiles, rates, goodput, and whether the figures can be trusted.

import { bottleneck } from '../analysis/bottleneck.ts';
import { energyLine, otherScopeLines } from '../analysis/energy-words.ts';
import type { CellFile, LatencySummary } from '../core/index.ts';

/** @param dir where the capture is */
export function loadTable(cell: CellFile): string[] {
  const { metrics, slo } = cell;
  const head = `${''.padEnd(26)}${['mean', 'p50', 'p90', 'p95', 'p99', 'max'].map((name) => name.padStart(10)).join('')}   ms`;
  const rows: readonly (readonly [string, LatencySummary])[] = [
    ['TTFT from schedule', metrics.ttft],
    ['TTFT from dispatch', metrics.ttftFromDispatch],
    ['TPOT', metrics.tpot],
    ...(metrics.ttft.infinite > 0 ? completedRows(metrics) : []),
    ...(sawOtherText(metrics) ? ([['first visible text', metrics.firstVisible]] as const) : []),
    ['ITL', metrics.itl],
    ['E2E from schedule', metrics.e2e],
    ['send lag', metrics.sendLag],
  ];
  return [
    '',
    `${marks(cell)}window ${Number(metrics.windowS.toFixed(3))} s: ${metrics.arrivals} arrivals, ${metrics.states.completed} completed, ${metrics.states.failed} failed, ${metrics.states.truncated} truncated, ${metrics.states.running} running`,
    '',
    head,
    ...rows.map(([name, summary]) => latencyRow(name, summary)),
    '',
    `requests/s   offered ${figure(metrics.offeredReqPerS)}   dispatched ${figure(metrics.dispatchedReqPerS)}   completed ${figure(metrics.completedReqPerS)}`,
    `tokens/s     output ${figure(metrics.throughputTokPerS)}   good ${figure(metrics.goodputTokPerS)}   busiest second ${figure(metrics.peakThroughputTokPerS)}`,
    `goodput      ${figure(metrics.goodputReqPerS)} req/s with TTFT <= ${slo.ttftMs} ms and TPOT <= ${slo.tpotMs} ms; attainment ${attainment(cell)}`,
    ...energyLines(cell),
    ...outcomeLines(cell),
    ...heldBackLines(cell),
    '',
    ...verdictLines(cell),
  ];
}

/** Shown beside the figures that count misses, so that fast refusals cannot make them look better. */
const completedRows = ({ ttftCompleted, tpotCompleted }: CellFile['metrics']) =>
  [
    ['  TTFT, completed only', ttftCompleted],
    ['  TPOT, completed only', tpotCompleted],
  ] as const;

/** True where answers begin with tokens that a reader never sees: reasoning, or the arguments of a tool call. */
const sawOtherText = ({ firstVisible, ttftCompleted }: CellFile['metrics']) =>
  firstVisible.n > 0 && firstVisible.meanMs !== ttftCompleted.meanMs;

const marks = (cell: CellFile): string => (cell.synthetic ? 'SYNTHETIC  ' : '');

function latencyRow(name: string, summary: LatencySummary): string {
  const { meanMs, p50Ms, p90Ms, p95Ms, p99Ms, maxMs } = summary;
  const cells = [meanMs, p50Ms, p90Ms, p95Ms, p99Ms, maxMs].map((value) => latency(value).padStart(10));
  return `${name.padEnd(26)}${cells.join('')}${summary.small ? `   n = ${summary.n}` : ''}`;
}

const latency = (value: number | null): string =>
  value === null ? '-' : Number.isFinite(value) ? value.toFixed(2) : 'missed';
const figure = (value: number | null): string => (value === null ? 'not known' : value.toFixed(2));
const attainment = ({ metrics }: CellFile): string =>
  metrics.attainment === null ? 'not known' : `${(metrics.attainment * 100).toFixed(2)} %`;

function energyLines(cell: CellFile): string[] {
  const { cost } = cell.metrics;
  const lines = cell.gpu.kind === 'none' ? [] : [`energy       ${energyLine(cell)}`];
  lines.push(...otherScopeLines(cell).map((text) => `beside       ${text}`));
  if (cost?.dollarsPerMtok != null)
    lines.push(`cost         $${cost.dollarsPerMtok.toFixed(3)} per million good tokens`);
  return lines;
}

function outcomeLines({ metrics }: CellFile): string[] {
  const misses = Object.entries(metrics.outcomes).filter(([code]) => code !== 'ok');
  return misses.length === 0 ? [] : [`misses       ${misses.map(([code, n]) => `${n} ${code}`).join(', ')}`];
}

/** Who held the load back, when less completed than was offered. */
function heldBackLines(cell: CellFile): string[] {
  const found = bottleneck(cell);
  return found === null ? [] : [`held back    ${found.text}`];
}

function verdictLines(cell: CellFile): string[] {
  const hits = cell.rules.filter((rule) => rule.status === 'hit');
  const unasked = cell.labels.includes('no_server_metrics')
    ? [
        'no_server_metrics: V17-V19 (prefix hits, preemptions, restarts) could not all be asked of this server.',
        "  Advice: open its /metrics to this machine, if it has vLLM's series; else judge by what you know of the server.",
      ]
    : [];
  const labels = cell.labels.length === 0 ? '' : `   labels: ${cell.labels.join(', ')}`;
  return [
    `${cell.valid ? 'valid' : 'NOT VALID'}${cell.status === 'complete' ? '' : ` (${cell.status}: ${cell.statusReason})`}${labels}`,
    ...hits.map((rule) => `  ${rule.act === 'W' ? 'warning' : 'excluded'} ${rule.rule} ${rule.code}: ${rule.text}`),
    ...unasked,
  ];
}
