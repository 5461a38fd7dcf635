// The figures as a person reads them.

import type { Summary } from '../src/analysis/summary.ts';
import type { Figures } from './figures.ts';
import type { Floor } from './floors.ts';
import type { Machine } from './machine.ts';
import type { Throughput } from './parse-client.ts';
import { type TimingRow, TRUTH } from './timing.ts';

const LABEL_WIDTH = 62;
const CELL_WIDTH = 30;
/** Above this busy share the two sides of a load no longer have their cores to themselves. */
const BUSY = 0.7;

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

export function figuresText({ slow, fast, fastRuns, identity, startupMs, parse }: Figures): string {
  const { promptTokens, outputTokens, ttftMs, itlMs } = TRUTH;
  const cell = (label: string, pick: (row: TimingRow) => string) => line(label, pick(slow), pick(fast));
  return [
    line(
      `Truth ${ttftMs} / ${itlMs} ms, prompt ${promptTokens}, output ${outputTokens} tokens`,
      '10 req/s',
      `100 req/s, median of ${fastRuns.length}`,
    ),
    cell('delivered / scheduled requests', (row) => `${row.delivered} / ${row.scheduled}`),
    cell('  of them matched with the truth by id', (row) => String(row.paired)),
    cell('TTFT error from dispatch, against sends: mean / p50 / p99', (row) => meanP50P99(row.ttftErrorMs)),
    cell('  against the due time (server lateness in it)', (row) => meanP50P99(row.ttftErrorFromDueMs)),
    cell('  from the scheduled time (send lag in it)', (row) => meanP50P99(row.ttftErrorFromScheduledMs)),
    cell('send lag: p50 / p99 / max', (row) => p50P99Max(row.sendLagMs)),
    cell('mean gap error', (row) => `${signed(row.gapErrorMs)} ms`),
    cell('sigma of gaps: client / truth', (row) => `${ms(row.gapMs.sigma)} / ${ms(row.truthGapMs.sigma)} ms`),
    cell('  excess of the client', (row) => `${ms(row.gapExcessSigmaMs)} ms`),
    cell("the server's own lateness: p50 / p99 / max", (row) => p50P99Max(row.serverLatenessMs)),
    cell('client CPU per event: start-up included / while playing', cpuCell),
    cell('sockets opened late / requests sent again', (row) => `${row.lateSockets} / ${row.resent}`),
    cell('busy share: client loop / whole machine', (row) =>
      [row.clientLoopUtilization, row.hostCpuShare].map(percent).join(' / '),
    ),
    '',
    `Schedule and requests for ${identity.loads.map((load) => load.workers).join(', ')} workers: ${identity.identical ? 'identical' : 'DIFFERENT'}`,
    ...identity.loads.map(
      (load) =>
        `  ${load.workers}: ${load.received} of ${load.requests} received, schedule ${load.scheduleSha256.slice(0, 16)}, requests ${load.receivedSha256.slice(0, 16)}`,
    ),
    '',
    `Parser alone, ${parse.bytesPerEvent.toFixed(0)} bytes per event: events per CPU second, beside a loop that only touches the bytes`,
    parseLine('one event per read', parse.onePerRead),
    parseLine('reads of 64 KiB', parse.fullReads),
    '',
    `Start: tokbench --help in ${startupMs.toFixed(0)} ms (median of 5)`,
  ].join('\n');
}

export function floorsText(floors: readonly Floor[]): string {
  return floors
    .map(({ met, name, measured, required }) => {
      const verdict = met ? 'met   ' : 'missed';
      return `${verdict}  ${name}: ${measured}${required ? '  (required)' : ''}`;
    })
    .join('\n');
}

/** Why figures may be worse than the client is; empty when the machine was calm. */
export function busyText({ slow, fastRuns }: Figures): string {
  const busiest = Math.max(...[slow, ...fastRuns].map((row) => row.hostCpuShare ?? 0));
  if (busiest <= BUSY) return '';
  return `The machine was up to ${percent(busiest)} busy while the loads ran: other work made these figures worse. Repeat on an idle one.\n`;
}

function line(label: string, ...cells: string[]): string {
  return label.padEnd(LABEL_WIDTH) + cells.map((cell) => cell.padStart(CELL_WIDTH)).join('');
}

function parseLine(label: string, { eventsPerCpuS, touchOnlyEventsPerCpuS }: Throughput): string {
  const share = ((eventsPerCpuS / touchOnlyEventsPerCpuS) * 100).toFixed(0);
  return `  ${label.padEnd(20)} ${millions(eventsPerCpuS)} million, touching ${millions(touchOnlyEventsPerCpuS)} million (${share} %)`;
}

const millions = (value: number): string => (value / 1e6).toFixed(2);
const ms = (value: number): string => value.toFixed(3);
const signed = (value: number): string => (value < 0 ? '' : '+') + value.toFixed(4);
const meanP50P99 = ({ mean, p50, p99 }: Summary): string => `${ms(mean)} / ${ms(p50)} / ${ms(p99)} ms`;
const p50P99Max = ({ p50, p99, max }: Summary): string => `${ms(p50)} / ${ms(p99)} / ${ms(max)} ms`;
const cpuCell = (row: TimingRow): string => `${row.cpuUsPerEvent.toFixed(1)} / ${row.playCpuUsPerEvent.toFixed(1)} us`;
const percent = (share: number | null): string => (share === null ? '-' : `${(share * 100).toFixed(0)} %`);
