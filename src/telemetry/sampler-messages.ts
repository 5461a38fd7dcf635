// What the sampler thread and its owner tell each other: flags in shared memory one way, messages the other.

import type { ExitCode } from '../core/index.ts';
import type { SampleAddress } from './sample-source.ts';

/** Indexes into the shared Int32Array. WAKE counts requests: the thread answers with the number that it has seen. */
export const STOP = 0;
export const WAKE = 1;
export const CONTROL_BYTES = 8;

export interface SamplerInput {
  readonly address: SampleAddress;
  readonly originNs: bigint;
  readonly periodMs: number;
  readonly control: SharedArrayBuffer;
}

export type SamplerMessage =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'failed';
      readonly code: string;
      readonly message: string;
      readonly advice: string;
      readonly exitCode: ExitCode;
    }
  | {
      readonly kind: 'batch';
      /** See packSamples. */
      readonly rows: Float64Array<ArrayBuffer>;
      readonly errors: Readonly<Record<string, number>>;
      readonly seenWake: number;
    };
