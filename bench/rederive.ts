// How long, and with how much memory, does it take to derive a large cell again from its Parquet files?

import { join } from 'node:path';
import type { MakeQuestion } from './capture-maker.ts';
import { askChild } from './child.ts';
import type { CaptureSize } from './synthetic-capture.ts';

export interface RederiveCost {
  /** User and system time of all threads, without the start of the process; a busy machine changes it little. */
  readonly cpuS: number;
  readonly wallS: number;
  readonly peakRssMb: number;
  readonly numbersChecked: number;
}

export interface Rederived extends RederiveCost {
  readonly size: CaptureSize;
}

/** Makes a capture up in `folder` and verifies it, each in a process of its own. */
export async function measureRederive(folder: string, size: CaptureSize): Promise<Rederived> {
  const dir = join(folder, 'capture');
  const question: MakeQuestion = { dir, size };
  await askChild('capture-maker.ts', question, undefined, LIMIT_MS);
  return { size, ...(await askChild<RederiveCost>('rederive-client.ts', { dir }, undefined, LIMIT_MS)) };
}

const LIMIT_MS = 300_000;
