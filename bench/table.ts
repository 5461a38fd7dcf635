// The figures as a person reads them.

import { median, type Summary } from '../src/analysis/summary.ts';
import { costRatio, type Figures } from './figures.ts';
import type { Floor } from './floors.ts';
import type { Machine } from './machine.ts';
import type { Throughput } from './parse-client.ts';
import type { Saturated } from './saturated.ts';
import type { LoadShape } from './shape.ts';
import type { ClientCost, TimingRow } from './timing.ts';

const LABEL_WIDTH = 54;
const CELL_WIDTH = 31;
/** Above this busy share the two sides of a load no longer have their cores to themselves. */
const BUSY = 0.7;

export interface Column {
  readonly title: string;
  readonly row: TimingRow;
}

export function headerText({ date, cores, cpuModel, node, loadAverage, pinning }: Machine): string {
  const placed =
    pinning === null
      ? 'nothing is pinned: taskset or a second core is missing'
      : `client on core ${pinning.client}, server on core ${pinning.server} (taskset)`;
  const busy = loadAverage > 0.5 ? `: other work is running, figures are worse for it` : '';
  return [
    'How exact and how cheap is the client, on this machine?',
    `  ${date}, ${cores} x ${cpuModel}, Node ${node}`,
    `  ${placed}; load average before ${loadAverage.toFixed(2)}${busy}`,
  ].join('\n');
}

/** Everything but the loads against the truth, each of which `timingText` shows. */
export function figuresText({ identity, startupMs, parse, saturated, sampler, rederived, arrivals }: Figures): string {
  const { size } = rederived;
  return [
    ...saturatedLines(saturated),
    '',
    `Parser alone, ${parse.bytesPerEvent.toFixed(0)} bytes per event: events per CPU second, beside a loop that only touches the bytes`,
    parseLine('one event per read', parse.onePerRead),
    parseLine('reads of 64 KiB', parse.fullReads),
    '',
    `Schedule and requests for ${identity.loads.map((load) => load.workers).join(', ')} workers: ${identity.identical ? 'identical' : 'DIFFERENT'}`,
    ...identity.loads.map(
      (load) =>
        `  ${load.workers}: ${load.received} of ${load.requests} received, schedule ${load.scheduleSha256.slice(0, 16)}, requests ${load.receivedSha256.slice(0, 16)}`,
    ),
    `Arrivals of ${arrivals.dispersion.length} seeds: dispersion ${arrivals.dispersion.map((index) => index.toFixed(2)).join(' ')}; gaps p = ${arrivals.gapsP.toFixed(3)}`,
    '',
    sampler === null
      ? 'Sampler: no compiler for the NVML stand-in'
      : `Sampler through FFI: ${sampler.samplesPerS.toFixed(1)} samples per second, ${sampler.cpuPercent.toFixed(2)} % of a core`,
    `A cell of ${size.requests} x ${size.tokens} tokens derived again: ${rederived.cpuS.toFixed(1)} s of CPU, ${rederived.wallS.toFixed(1)} s of time, at most ${rederived.peakRssMb.toFixed(0)} MB; ${rederived.numbersChecked} numbers agree`,
    `Start: tokbench --help in ${startupMs.toFixed(0)} ms (median of 5)`,
  ].join('\n');
}

/** One load, each client a column. */
export function timingText(
  { ttftMs, itlMs, promptTokens, outputTokens }: LoadShape,
  columns: readonly Column[],
): string {
  const tokens = [...new Set([Math.min(...outputTokens), Math.max(...outputTokens)])].join('-');
  const cell = (label: string, pick: (row: TimingRow) => string) => line(label, ...columns.map(({ row }) => pick(row)));
  return [
    line(
      `Truth ${ttftMs} / ${itlMs} ms, prompt ${promptTokens}, output ${tokens} tokens`,
      ...columns.map(({ title }) => title),
    ),
    cell('delivered / scheduled requests', (row) => `${row.delivered} / ${row.scheduled}`),
    cell('  of them matched with the truth by id', (row) => String(row.paired)),
    cell('TTFT error from dispatch, against sends: mean/p50/p99', (row) => meanP50P99(row.ttftErrorMs)),
    cell("  less the server's read lag", (row) => meanP50P99(row.ttftErrorLessReadLagMs)),
    cell('  against the due time (server lateness in it)', (row) => meanP50P99(row.ttftErrorFromDueMs)),
    cell('  from the scheduled time (send lag in it)', (row) => meanP50P99(row.ttftErrorFromScheduledMs)),
    cell('send lag: p50 / p99 / max', (row) => p50P99Max(row.sendLagMs)),
    cell('tokens seen after they were sent: p50 / p99 / max', (row) => p50P99Max(row.seenLagMs)),
    cell('  the last token of each request: mean / p50 / p99', (row) => meanP50P99(row.lastSeenLagMs)),
    cell('mean gap error', (row) => `${signed(row.gapErrorMs)} ms, ${signed(row.gapErrorPercent)} %`),
    cell('sigma of gaps: client / truth / excess', (row) =>
      slashed([row.gapMs.sigma, row.truthGapMs.sigma, row.gapExcessSigmaMs]),
    ),
    cell("the server's own lateness: p50 / p99 / max", (row) => p50P99Max(row.serverLatenessMs)),
    cell("the server's read lag: p50 / p99 / max", (row) => p50P99Max(row.readLagMs)),
    cell('client CPU per event: start-up included / playing', cpuCell),
    cell('sockets opened late / requests sent again', (row) => `${row.lateSockets} / ${row.resent}`),
    cell('busy share: client loop / whole machine', (row) =>
      [row.clientLoopUtilization, row.hostCpuShare].map(percent).join(' / '),
    ),
    cell('most memory of the client', (row) => `${figure(row.peakRssMb, 0)} MB`),
  ].join('\n');
}

export function floorsText(floors: readonly Floor[]): string {
  return floors
    .map(({ met, name, measured, required, goal }) => {
      const verdict = met ? 'met   ' : 'missed';
      const beyond = goal === null ? '' : `; goal ${goal.name} ${goal.met ? 'met' : 'not yet'}`;
      return `${verdict}  ${name}: ${measured}${beyond}${required ? '  (required)' : ''}`;
    })
    .join('\n');
}

/** Why figures may be worse than the client is; empty when the machine was calm. */
export function busyText({ slow, fast }: Figures): string {
  const busiest = Math.max(...[slow, ...fast.runs].map((row) => row.hostCpuShare ?? 0));
  if (busiest <= BUSY) return '';
  return `The machine was up to ${percent(busiest)} busy while the loads ran: other work made these figures worse. Repeat on an idle one.\n`;
}

/** Our CPU beside the C reader's, pair by pair. */
export function ratioText({ fast }: Figures): string {
  if (fast.readerRuns.length === 0) return 'CPU per event over the C reader: no C compiler';
  const pairs = fast.runs.map(
    (run, i) => `${figure(run.cpuUsPerEvent, 1)}/${figure(fast.readerRuns[i]!.cpuUsPerEvent, 1)}`,
  );
  return `CPU per event at 100 req/s, ours over the C reader's, us: ${pairs.join('  ')}; median ratio ${costRatio(fast).toFixed(2)}`;
}

function saturatedLines({ rounds, share }: Saturated): string[] {
  const middle = (pick: (round: Saturated['rounds'][number]) => ClientCost | null): string => {
    const costs = rounds.map(pick).filter((cost) => cost !== null);
    if (costs.length === 0) return 'no C compiler';
    const us = median(costs.map((cost) => cost.playCpuUsPerEvent));
    const perRead = median(costs.map((cost) => cost.events / cost.reads));
    const perS = median(costs.map((cost) => cost.eventsPerS));
    return `${us.toFixed(2)} us per event (${(1 / us).toFixed(3)} million per CPU s), ${perRead.toFixed(2)} events per read, ${perS.toFixed(0)} events per s`;
  };
  return [
    `Saturated: ${rounds.length} rounds of 1,000 streams, 100,000 events per second offered, one per packet; CPU while playing`,
    `  our client               ${middle(({ ours }) => ours)}`,
    `  Node reader, no parsing  ${middle(({ nodeReader }) => nodeReader)}`,
    `  C reader, no parsing     ${middle(({ cReader }) => cReader)}`,
    `  Node reader's over ours  ${Number.isNaN(share) ? 'not comparable: events came several to a read, the machine was too busy' : share.toFixed(3)}`,
  ];
}

function line(label: string, ...cells: string[]): string {
  return label.padEnd(LABEL_WIDTH) + cells.map((cell) => cell.padStart(CELL_WIDTH)).join('');
}

function parseLine(label: string, { eventsPerCpuS, touchOnlyEventsPerCpuS }: Throughput): string {
  const share = ((eventsPerCpuS / touchOnlyEventsPerCpuS) * 100).toFixed(0);
  return `  ${label.padEnd(20)} ${millions(eventsPerCpuS)} million, touching ${millions(touchOnlyEventsPerCpuS)} million (${share} %)`;
}

const millions = (value: number): string => (value / 1e6).toFixed(2);
const figure = (value: number, digits: number): string =>
  Number.isNaN(value) ? '-' : value.toFixed(Math.abs(value) >= 100 ? Math.min(1, digits) : digits);
const signed = (value: number): string => (value < 0 ? '' : '+') + value.toFixed(4);
const slashed = (values: readonly number[]): string =>
  values.every(Number.isNaN) ? '-' : `${values.map((value) => figure(value, 3)).join(' / ')} ms`;
const meanP50P99 = ({ mean, p50, p99 }: Summary): string => slashed([mean, p50, p99]);
const p50P99Max = ({ p50, p99, max }: Summary): string => slashed([p50, p99, max]);
const cpuCell = (row: TimingRow): string => `${row.cpuUsPerEvent.toFixed(1)} / ${row.playCpuUsPerEvent.toFixed(1)} us`;
const percent = (share: number | null): string => (share === null ? '-' : `${(share * 100).toFixed(0)} %`);
