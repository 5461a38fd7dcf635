// One load against the known truth: what a client got wrong, and what it cost.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type SeenRequest, seenRequests, type TimingErrors, timingErrors } from '../src/analysis/timing-errors.ts';
import { parseTruthLog } from '../src/analysis/truth-log.ts';
import { askChild } from './child.ts';
import type { LoadAnswer, LoadQuestion } from './load-client.ts';
import type { Pinning } from './machine.ts';
import type { PeerAnswer, PeerQuestion } from './peer.ts';
import type { Spent } from './process-cost.ts';
import { playWithReader } from './raw-reader.ts';
import type { LoadShape } from './shape.ts';
import { startTruthServer } from './truth-server.ts';

/** What the measurements share. */
export interface Bench {
  readonly folder: string;
  readonly pinning: Pinning | null;
  /** Compiled programs, null without a compiler. */
  readonly truthServer: string | null;
  readonly rawReader: string | null;
}

export interface ClientCost {
  readonly events: number;
  /** Socket reads that brought content, or of a peer: any part of an answer. */
  readonly reads: number;
  /** CPU of the whole client process per content event, start-up included. */
  readonly cpuUsPerEvent: number;
  /** The same from the load's start on. */
  readonly playCpuUsPerEvent: number;
  /** Over the whole load, from its start on. */
  readonly eventsPerS: number;
}

export interface TimingRow extends TimingErrors, ClientCost {
  readonly resent: number;
  readonly lateSockets: number;
  /** Busy share of all cores of the machine during the load, whoever used them; null when not known. */
  readonly hostCpuShare: number | null;
  readonly clientLoopUtilization: number | null;
  /** Most resident memory of the client's process, MB; NaN when not known. */
  readonly peakRssMb: number;
}

/** Plays a load once with our own client, one worker, against a fresh server. */
export async function measureTiming(bench: Bench, shape: LoadShape, seed: number): Promise<TimingRow> {
  const { answer, errors } = await againstTruth(bench, shape, async (port, originNs) => {
    const question: LoadQuestion = { port, shape, seed, originNs, workers: 1, rssEveryS: null };
    const answer = await askChild<LoadAnswer>('load-client.ts', question, bench.pinning?.client);
    return { answer, seen: seenRequests(answer.requests, (index) => `${answer.idPrefix}-${index}`) };
  });
  const { requests, client } = answer;
  return {
    ...errors,
    ...costOf(answer, requests.eventAtNs.length, contentReads(answer)),
    resent: requests.resent.reduce((sum, one) => sum + one, 0),
    lateSockets: client.socketsOpenedLate,
    hostCpuShare: client.hostCpuShare,
    clientLoopUtilization: client.workers[0]?.loopUtilization ?? null,
    peakRssMb: answer.peakRssMb,
  };
}

export type Peer = 'C reader' | 'undici';

/** The same with another client; null when there is none here. */
export async function measurePeer(bench: Bench, peer: Peer, shape: LoadShape, seed: number): Promise<TimingRow | null> {
  const { rawReader, folder, pinning } = bench;
  if (peer === 'C reader' && rawReader === null) return null;
  const { answer, errors } = await againstTruth(bench, shape, async (port, originNs) => {
    const question: PeerQuestion = { port, shape, seed, originNs };
    const answer =
      peer === 'undici'
        ? await askChild<PeerAnswer>('undici-client.ts', question, pinning?.client)
        : await playWithReader(rawReader!, question, folder, pinning?.client);
    return { answer, seen: answer.seen };
  });
  const events = answer.seen.reduce((sum, { eventAtNs }) => sum + eventAtNs.length, 0);
  return {
    ...errors,
    ...costOf(answer, events, answer.reads),
    resent: 0,
    lateSockets: 0,
    hostCpuShare: null,
    clientLoopUtilization: null,
    peakRssMb: Number.NaN,
  };
}

export function costOf({ cpuUs, playCpuUs, playS }: Spent, events: number, reads: number): ClientCost {
  return {
    events,
    reads,
    cpuUsPerEvent: cpuUs / events,
    playCpuUsPerEvent: playCpuUs / events,
    eventsPerS: events / playS,
  };
}

/** Events of one request that came with one read share its number. */
export function contentReads({ requests }: Pick<LoadAnswer, 'requests'>): number {
  const { count, eventStart, eventRead } = requests;
  let reads = 0;
  for (let row = 0; row < count; row++) {
    for (let event = eventStart[row]!; event < eventStart[row + 1]!; event++) {
      if (event === eventStart[row] || eventRead[event] !== eventRead[event - 1]) reads += 1;
    }
  }
  return reads;
}

async function againstTruth<Answer>(
  { folder, pinning, truthServer }: Bench,
  shape: LoadShape,
  play: (port: number, originNs: bigint) => Promise<{ answer: Answer; seen: readonly SeenRequest[] }>,
): Promise<{ answer: Answer; errors: TimingErrors }> {
  const logPath = join(folder, 'truth.csv');
  const { ttftMs, itlMs } = shape;
  const server = await startTruthServer({ ttftMs, itlMs, logPath, core: pinning?.server, program: truthServer });
  const originNs = process.hrtime.bigint();
  try {
    const { answer, seen } = await play(server.port, originNs);
    await server.stop();
    return { answer, errors: timingErrors(seen, parseTruthLog(readFileSync(logPath, 'utf8'), originNs), itlMs) };
  } finally {
    await server.stop();
  }
}
