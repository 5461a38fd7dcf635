// Do the raw records of a cell make sense by themselves?

import { type CellFile, flagMask, NS_PER_S, OUTCOMES, type RequestTable } from '../../core/index.ts';
import { measureRequests } from '../request-metrics.ts';
import { stateOfEnd } from '../request-state.ts';
import type { Findings } from './findings.ts';

const UNVERIFIED = flagMask(['count_unverified']);
const OK = OUTCOMES.indexOf('ok');

export function checkRecords(
  files: { requests: string; events: string },
  cell: CellFile,
  table: RequestTable,
  found: Findings,
): void {
  checkPhases(files.requests, cell, table, found);
  for (let row = 0; row < table.count; row++) {
    checkTimes(files, table, row, found);
    if (table.outcome[row] === OK) checkCompleted(files.requests, cell.load.ignoreEos, table, row, found);
  }
  checkStates(files.requests, cell, table, found);
}

function checkPhases(file: string, { phases, load }: CellFile, table: RequestTable, found: Findings): void {
  const { startNs, window, tailEndNs } = phases;
  const planned = (seconds: number) => startNs + Math.round(seconds * NS_PER_S);
  // A closed loop with a number of requests ends with the last of them.
  const until = (atNs: number) => (load.requests === null ? atNs : Math.min(atNs, phases.drainEndNs));
  const want = {
    windowStartNs: planned(load.warmupS),
    windowEndNs: until(planned(load.warmupS + load.windowS)),
    tailEndNs: until(planned(load.warmupS + load.windowS + load.tailS)),
  };
  const got = { windowStartNs: window.startNs, windowEndNs: window.endNs, tailEndNs };
  for (const key of ['windowStartNs', 'windowEndNs', 'tailEndNs'] as const) {
    found.numbersChecked++;
    found.require(Math.abs(got[key] - want[key]) <= 1, file, `phases: ${key}`, { got: got[key], want: want[key] });
  }
  const outside = table.scheduledNs.some((atNs) => atNs < startNs || atNs > tailEndNs);
  found.require(!outside, file, 'an arrival lies outside the load');
}

function checkTimes(
  files: { requests: string; events: string },
  table: RequestTable,
  row: number,
  found: Findings,
): void {
  const { eventStart, eventAtNs, eventRead, dispatchedNs, firstByteNs, doneNs } = table;
  const sentNs = dispatchedNs[row]!;
  const marks = [sentNs, firstByteNs[row]!, doneNs[row]!].filter((atNs) => !Number.isNaN(atNs));
  const ordered = marks.every((atNs, at) => at === 0 || atNs >= marks[at - 1]!);
  found.require(ordered, files.requests, `row ${row}: dispatch, first byte and end are out of order`);
  let previousNs = Number.isNaN(firstByteNs[row]!) ? sentNs : firstByteNs[row]!;
  let previousRead = 0;
  for (let event = eventStart[row]!; event < eventStart[row + 1]!; event++) {
    const inOrder = !(eventAtNs[event]! < previousNs) && eventRead[event]! >= previousRead;
    found.require(inOrder, files.events, `request ${row}: event ${event - eventStart[row]!} is out of order`);
    previousNs = eventAtNs[event]!;
    previousRead = eventRead[event]!;
  }
}

/** An `ok` request has as many tokens as its events, and by METHOD 1.2 as many as it asked for. */
function checkCompleted(file: string, exactLength: boolean, table: RequestTable, row: number, found: Findings): void {
  let tokens = 0;
  for (let event = table.eventStart[row]!; event < table.eventStart[row + 1]!; event++)
    tokens += table.eventTokens[event]!;
  found.numbersChecked++;
  found.require(tokens === table.outputTokens[row], file, `row ${row}: outputTokens`, {
    got: table.outputTokens[row],
    want: tokens,
  });
  if ((table.flags[row]! & UNVERIFIED) !== 0) return;
  const state = stateOfEnd({
    ended: 'ok',
    tokens,
    requestedTokens: table.requestedTokens[row]!,
    exactLength,
    finishReason: table.finishReason[row] ?? null,
  });
  found.require(state === 'completed', file, `row ${row}: outcome ok, but by its counts it is ${state}`);
}

/** The rows of the window add up to the stored outcomes and states, counted anew. */
function checkStates(file: string, cell: CellFile, table: RequestTable, found: Findings): void {
  const measured = measureRequests(table, cell.slo);
  const { window } = cell.phases;
  const rows = Array.from(table.scheduledNs.keys()).filter((row) => {
    const atNs = table.scheduledNs[row]!;
    return atNs >= window.startNs && atNs < window.endNs;
  });
  const sum = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((a, b) => a + b, 0);
  const { outcomes, states, attained } = cell.metrics;
  found.require(sum(outcomes) === rows.length, file, 'outcomes do not add up to the arrivals', {
    got: sum(outcomes),
    want: rows.length,
  });
  found.require(sum(states) === rows.length, file, 'states do not add up to the arrivals', {
    got: sum(states),
    want: rows.length,
  });
  const good = rows.filter((row) => measured.attained[row] === 1).length;
  found.require(good === attained, file, 'attained requests', { got: attained, want: good });
}
