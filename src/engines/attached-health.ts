// Notices that a server which is not ours no longer answers.

import { type Clock, NS_PER_MS, sleep } from '../core/index.ts';
import type { WatchLimits } from './health.ts';
import type { Probe, ProbeResult } from './probe.ts';

export interface AttachedWatch {
  readonly probe: Probe;
  /** A path that answered when we attached; null watches nothing. */
  readonly path: string | null;
  readonly clock: Clock;
  /** Aborts when we let go of the server ourselves. */
  readonly stopping: AbortSignal;
  readonly limits?: WatchLimits;
}

/** A gateway may lose sight of its server for a moment. */
const LIMITS: WatchLimits = { pollMs: 2000, failingMs: 10_000, silentMs: 60_000 };
const PROBE_MS = 10_000;
const never = new Promise<never>(() => {});

/** Resolves once, with a sentence for the report, when the server stops answering; never when we let go of it. */
export async function watchAttached(watch: AttachedWatch): Promise<string> {
  const { probe, path, clock, stopping } = watch;
  const limits = watch.limits ?? LIMITS;
  if (path === null) return never;
  let sinceNs: bigint | null = null;
  while (!stopping.aborted) {
    const askedNs = clock.monotonicNs();
    const reply = await probe.get(path, { timeoutMs: PROBE_MS, signal: stopping });
    if (stopping.aborted) break;
    const trouble = troubleOf(reply);
    sinceNs = trouble === null ? null : (sinceNs ?? askedNs);
    if (trouble !== null && sinceNs !== null) {
      const failedMs = Number(clock.monotonicNs() - sinceNs) / NS_PER_MS;
      if (failedMs >= (trouble.silent ? limits.silentMs : limits.failingMs)) {
        return `the server stopped answering: ${path} ${trouble.text} for ${(failedMs / 1000).toFixed(1)} s`;
      }
    }
    await sleep(limits.pollMs, stopping).catch(() => {});
  }
  return never;
}

/** Refusals, rate limits and redirects are answers: something is alive there. */
function troubleOf(reply: ProbeResult): { readonly text: string; readonly silent: boolean } | null {
  if (reply.status !== null) return reply.status < 500 ? null : { text: `answered ${reply.status}`, silent: false };
  if (reply.reason === 'timeout') return { text: 'gave no answer', silent: true };
  return { text: reply.reason === 'refused' ? 'refused the connection' : 'could not be reached', silent: false };
}
