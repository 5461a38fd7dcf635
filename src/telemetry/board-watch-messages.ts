// What the watch's thread and its owner tell each other.

import type { ExitCode, LaunchStage, SurroundingsEvidence } from '../core/index.ts';
import type { GpuAddress } from '../gpu/device.ts';

export interface WatchInput {
  /** In the order of the boards' numbers. */
  readonly addresses: readonly GpuAddress[];
  readonly originNs: bigint;
  readonly periodMs: number;
  /** The variable and value that the server's processes carry; null when the server was running already. */
  readonly tag: { readonly name: string; readonly value: string } | null;
}

/** Asks for a poll out of turn, after the launch has come to another stage or not. */
export interface WatchRequest {
  readonly id: number;
  readonly stage: LaunchStage | null;
}

export type WatchMessage =
  | {
      readonly kind: 'failed';
      readonly code: string;
      readonly message: string;
      readonly advice: string;
      readonly exitCode: ExitCode;
    }
  /** `id` answers a request; null is a poll of the beat. The first one says that the watch is up. */
  | { readonly kind: 'polled'; readonly id: number | null; readonly evidence: SurroundingsEvidence };
