// The C reader that parses nothing: hands it a plan, reads back when each event came.

import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openFileLimit, socketsNeeded } from '../src/loadgen/capacity.ts';
import { pinned } from './machine.ts';
import { type PeerAnswer, type PeerQuestion, type PeerRequest, peerRequests } from './peer.ts';
import type { Spent } from './process-cost.ts';
import { expectedLatencyS, type LoadShape, planShape } from './shape.ts';

const PLAN_HEAD_BYTES = 16;

interface Said extends Spent {
  readonly startNs: string;
  readonly reads: number;
}

/** Plays `question` with the compiled reader; files go to `folder`. */
export async function playWithReader(
  program: string,
  { port, shape, seed, originNs }: PeerQuestion,
  folder: string,
  core: number | undefined,
): Promise<PeerAnswer> {
  const requests = peerRequests(planShape(shape, seed), port);
  const [planPath, stampsPath] = [join(folder, 'reader.plan'), join(folder, 'reader.stamps')];
  writeFileSync(planPath, encodePlan(requests));
  const args = [program, String(port), planPath, String(socketsOf(shape, requests.length)), stampsPath];
  const [command, ...rest] = pinned(core, args);
  const { stdout } = await promisify(execFile)(command!, rest);
  const { startNs, ...said } = JSON.parse(stdout) as Said;
  return {
    seen: decodeStamps(readFileSync(stampsPath), requests, Number(BigInt(startNs) - originNs), originNs),
    ...said,
  };
}

/** As many as our own client opens. */
export function socketsOf(shape: LoadShape, count: number): number {
  return Math.min(count, socketsNeeded(count / shape.windowS, expectedLatencyS(shape), openFileLimit()));
}

function encodePlan(requests: readonly PeerRequest[]): Buffer {
  return Buffer.concat(
    requests.flatMap(({ dueNs, bytes, maxTokens }) => {
      const head = Buffer.alloc(PLAN_HEAD_BYTES);
      head.writeBigInt64LE(BigInt(dueNs), 0);
      head.writeInt32LE(bytes.length, 8);
      head.writeInt32LE(maxTokens, 12);
      return [head, bytes];
    }),
  );
}

/** Of each request: int64 send time (0: never), int64 whether its end came, int64 n, n times int64. */
export function decodeStamps(
  file: Buffer,
  requests: readonly Pick<PeerRequest, 'id' | 'dueNs'>[],
  startNs: number,
  originNs: bigint,
): PeerAnswer['seen'] {
  let at = 0;
  const next = (): bigint => {
    at += 8;
    return file.readBigInt64LE(at - 8);
  };
  const relative = (absolute: bigint): number => Number(absolute - originNs);
  return requests.map(({ id, dueNs }) => {
    const sent = next();
    const ok = next() === 1n;
    const eventAtNs = Array.from({ length: Number(next()) }, () => relative(next()));
    return {
      id,
      ok,
      scheduledNs: startNs + dueNs,
      dispatchedNs: sent === 0n ? Number.NaN : relative(sent),
      eventAtNs,
    };
  });
}
