// One load against the known truth: what the client got wrong, and what it cost.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { seenRequests, type TimingErrors, timingErrors } from '../src/analysis/timing-errors.ts';
import { parseTruthLog } from '../src/analysis/truth-log.ts';
import { selfCommand } from '../src/cli/self.ts';
import { startTruthServer, TRUTH_TOKEN_IDS } from '../src/runner/truth-server.ts';
import { askChild } from './child.ts';
import type { LoadAnswer, LoadQuestion } from './load-client.ts';
import { type Pinning, pinned } from './machine.ts';

export interface TimingRow extends TimingErrors {
  readonly rate: number;
  readonly events: number;
  /** CPU of the whole client process per content event, start-up included. */
  readonly cpuUsPerEvent: number;
  /** The same from the load's start on. */
  readonly playCpuUsPerEvent: number;
  readonly resent: number;
  readonly lateSockets: number;
  /** Busy share of all cores of the machine during the load, whoever used them; null when not known. */
  readonly hostCpuShare: number | null;
  readonly clientLoopUtilization: number | null;
}

export const TRUTH = { ttftMs: 50, itlMs: 20, promptTokens: 64, outputTokens: 64 } as const;
const WINDOW_S = 15;

/** Plays `rate` requests per second for 15 s against a fresh server. */
export async function measureTiming(
  rate: number,
  seed: number,
  folder: string,
  pinning: Pinning | null,
): Promise<TimingRow> {
  const logPath = join(folder, `truth-${rate}-${seed}.csv`);
  const { ttftMs, itlMs, promptTokens, outputTokens } = TRUTH;
  const wrap = (command: readonly string[]) => pinned(pinning?.server, command);
  const server = await startTruthServer({
    self: selfCommand(),
    ttftMs,
    itlMs,
    tokenIds: TRUTH_TOKEN_IDS,
    logPath,
    wrap,
  });
  const originNs = process.hrtime.bigint();
  let answer: LoadAnswer;
  try {
    const { port } = server.endpoint;
    const shape = { promptTokens, outputTokens, workers: 1, windowS: WINDOW_S };
    const question: LoadQuestion = { port, rate, seed, originNs, ...shape };
    answer = await askChild<LoadAnswer>('load-client.ts', question, pinning?.client);
  } finally {
    await server.stop();
  }
  const truth = parseTruthLog(readFileSync(logPath, 'utf8'), originNs);
  const { requests, client, idPrefix } = answer;
  const events = requests.eventAtNs.length;
  return {
    rate,
    events,
    ...timingErrors(
      seenRequests(requests, (index) => `${idPrefix}-${index}`),
      truth,
      itlMs,
    ),
    cpuUsPerEvent: answer.cpuUs / events,
    playCpuUsPerEvent: answer.playCpuUs / events,
    resent: requests.resent.reduce((sum, one) => sum + one, 0),
    lateSockets: client.socketsOpenedLate,
    hostCpuShare: client.hostCpuShare,
    clientLoopUtilization: client.workers[0]?.loopUtilization ?? null,
  };
}
