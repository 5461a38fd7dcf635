// Does a long load need more and more memory? A thousand streams for minutes, and the client's memory minute by minute.

import { askChild } from './child.ts';
import type { LoadAnswer, LoadQuestion } from './load-client.ts';
import { soakShape } from './program.ts';
import type { Bench } from './timing.ts';
import { startTruthServer } from './truth-server.ts';

export interface Soak {
  /** Resident memory of the client at the end of each minute, MB. */
  readonly rssMb: readonly number[];
  readonly requests: number;
  readonly events: number;
  readonly peakRssMb: number;
}

/** At the end of ten minutes at most a tenth more than after two minutes. */
export const GROWTH_LIMIT = 1.1;
const BASE_MINUTE = 2;
const SPARE_MS = 120_000;

export async function measureSoak({ pinning, truthServer }: Bench, minutes: number, seed: number): Promise<Soak> {
  const shape = soakShape(minutes);
  const { ttftMs, itlMs } = shape;
  const server = await startTruthServer({ ttftMs, itlMs, logPath: null, core: pinning?.server, program: truthServer });
  try {
    const originNs = process.hrtime.bigint();
    const question: LoadQuestion = { port: server.port, shape, workers: 1, seed, originNs, rssEveryS: 60 };
    const limitMs = minutes * 60_000 + SPARE_MS;
    const answer = await askChild<LoadAnswer>('load-client.ts', question, pinning?.client, limitMs);
    const { rssMb, peakRssMb, requests } = answer;
    return { rssMb: rssMb.slice(0, minutes), requests: requests.count, events: requests.eventAtNs.length, peakRssMb };
  } finally {
    await server.stop();
  }
}

/** Memory at the last minute over that at the second; NaN when it did not run that long. */
export function growthOf({ rssMb }: Pick<Soak, 'rssMb'>): number {
  const base = rssMb[BASE_MINUTE - 1];
  const last = rssMb.at(-1);
  return base === undefined || last === undefined || rssMb.length <= BASE_MINUTE ? Number.NaN : last / base;
}

export function soakText(soak: Soak): string {
  const growth = growthOf(soak);
  const met = growth <= GROWTH_LIMIT;
  return [
    `Soak: ${soak.requests} requests, ${soak.events} events`,
    ...soak.rssMb.map((mb, minute) => `  minute ${minute + 1}: ${mb.toFixed(1)} MB resident`),
    `  peak ${soak.peakRssMb.toFixed(1)} MB`,
    `${met ? 'met   ' : 'missed'}  memory at minute ${soak.rssMb.length} <= minute ${BASE_MINUTE} + 10 %: ${((growth - 1) * 100).toFixed(1)} %`,
  ].join('\n');
}
