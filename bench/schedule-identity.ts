// Is a load the same, byte for byte, however many workers play it? Judged by what a server received.

import { createHash } from 'node:crypto';
import { askChild } from './child.ts';
import type { LoadAnswer, LoadQuestion } from './load-client.ts';
import { type Recording, startRecorder } from './recorder.ts';
import type { LoadShape } from './shape.ts';

export interface PlayedLoad {
  readonly workers: number;
  readonly requests: number;
  readonly received: number;
  readonly repeated: number;
  /** SHA-256 of the arrivals, ns after the load's start, as 64-bit floats. */
  readonly scheduleSha256: string;
  /** SHA-256 of the plan's own arrivals: what was played must be what was planned. */
  readonly plannedSha256: string;
  /** SHA-256 of all received requests in the order of their ids. */
  readonly receivedSha256: string;
}

export interface ScheduleIdentity {
  readonly identical: boolean;
  readonly loads: readonly PlayedLoad[];
}

export const WORKERS = [1, 2, 4, 8] as const;
/** The recorder answers every request with one token, at once. */
const SHAPE: LoadShape = {
  rate: 100,
  atOnce: null,
  windowS: 2,
  promptTokens: 64,
  outputTokens: [1],
  ttftMs: 0,
  itlMs: 0,
};

/** Plays one short load with 1, 2, 4 and 8 workers, planned anew in a process of its own each time. */
export async function measureIdentity(seed: number, core: number | undefined): Promise<ScheduleIdentity> {
  const recorder = await startRecorder();
  try {
    const loads: PlayedLoad[] = [];
    for (const workers of WORKERS) {
      const question: LoadQuestion = {
        port: recorder.port,
        shape: SHAPE,
        workers,
        seed,
        originNs: process.hrtime.bigint(),
        rssEveryS: null,
      };
      const answer = await askChild<LoadAnswer>('load-client.ts', question, core);
      loads.push(playedLoad(workers, answer, recorder.take()));
    }
    return { identical: areIdentical(loads), loads };
  } finally {
    recorder.close();
  }
}

/** All loads are whole, were played as planned, and are equal to the first. */
export function areIdentical(loads: readonly PlayedLoad[]): boolean {
  const [first] = loads;
  if (first === undefined || first.requests === 0) return false;
  return loads.every(
    (load) =>
      load.received === load.requests &&
      load.repeated === 0 &&
      load.scheduleSha256 === load.plannedSha256 &&
      load.scheduleSha256 === first.scheduleSha256 &&
      load.receivedSha256 === first.receivedSha256,
  );
}

/** One digest of everything received, whatever the order in which it came. */
export function digestOfAll(digests: ReadonlyMap<string, string>): string {
  const hash = createHash('sha256');
  for (const [id, digest] of [...digests].sort(([a], [b]) => (a < b ? -1 : 1))) hash.update(`${id} ${digest}\n`);
  return hash.digest('hex');
}

function playedLoad(workers: number, answer: LoadAnswer, { digests, repeated }: Recording): PlayedLoad {
  const relative = answer.requests.scheduledNs.map((atNs) => atNs - answer.startNs);
  return {
    workers,
    requests: answer.requests.count,
    received: digests.size,
    repeated,
    scheduleSha256: createHash('sha256').update(relative).digest('hex'),
    plannedSha256: answer.scheduleSha256,
    receivedSha256: digestOfAll(digests),
  };
}
