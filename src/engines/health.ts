// Notices that a running engine died: its leader exits, or /health fails for several seconds in a row.

import { type Clock, NS_PER_MS, sleep } from '../core/index.ts';
import { type ExitInfo, exitText } from './engine-process.ts';
import { alarmLines, logTail } from './log-lines.ts';
import type { Probe, ProbeResult } from './probe.ts';

export interface WatchOptions {
  readonly probe: Probe;
  readonly clock: Clock;
  readonly exited: Promise<ExitInfo>;
  readonly logPath: string;
  readonly logOffset: number;
  /** Aborts when we stop the engine ourselves: what happens from then on is no death. */
  readonly stopping: AbortSignal;
  readonly limits?: WatchLimits;
}

export interface WatchLimits {
  readonly pollMs: number;
  /** No connection, or an answer that says error, for this long. */
  readonly failingMs: number;
  /** No answer at all for this long: a busy event loop is not a dead one. */
  readonly silentMs: number;
}

/** vLLM itself leaves about 4 s after its engine core died. */
const LIMITS: WatchLimits = { pollMs: 1000, failingMs: 3000, silentMs: 30_000 };
const PROBE_MS = 5000;
/** For the last words of the other processes to reach the log. */
const LAST_WORDS_MS = 300;

function complaintOf(reply: ProbeResult): { text: string; silent: boolean } | null {
  if (reply.status === 200) return null;
  if (reply.status !== null) return { text: `answered ${reply.status}`, silent: false };
  if (reply.reason === 'timeout') return { text: 'gave no answer', silent: true };
  return { text: reply.reason === 'refused' ? 'refused the connection' : `failed (${reply.message})`, silent: false };
}

/** Resolves with what was wrong once /health has failed for long enough; null when the signal aborts. */
async function failingHealth(options: WatchOptions, limits: WatchLimits): Promise<string | null> {
  const { probe, clock, stopping } = options;
  let sinceNs: bigint | null = null;
  while (!stopping.aborted) {
    const askedNs = clock.monotonicNs();
    const reply = await probe.get('/health', { timeoutMs: PROBE_MS, signal: stopping });
    if (stopping.aborted) return null;
    const complaint = complaintOf(reply);
    sinceNs = complaint === null ? null : (sinceNs ?? askedNs);
    if (complaint !== null && sinceNs !== null) {
      const failedMs = Number(clock.monotonicNs() - sinceNs) / NS_PER_MS;
      if (failedMs >= (complaint.silent ? limits.silentMs : limits.failingMs)) {
        return `/health ${complaint.text} for ${(failedMs / 1000).toFixed(1)} s`;
      }
    }
    await sleep(limits.pollMs, stopping).catch(() => {});
  }
  return null;
}

const never = new Promise<never>(() => {});

/** Resolves once, with a sentence for the report, when the engine dies by itself; never when we stop it. */
export async function watchForDeath(options: WatchOptions): Promise<string> {
  const done = new AbortController();
  const watched = { ...options, stopping: AbortSignal.any([options.stopping, done.signal]) };
  const byExit = options.exited.then((exit) => `the server exited by itself with ${exitText(exit)}`);
  const byHealth = failingHealth(watched, options.limits ?? LIMITS).then((text) =>
    text === null ? never : `the server is no longer healthy: ${text}`,
  );
  const cause = await Promise.race([byExit, byHealth]);
  done.abort();
  if (options.stopping.aborted) return never;
  await sleep(LAST_WORDS_MS);
  const lines = alarmLines(logTail(options.logPath, options.logOffset), 1);
  return lines.length === 0 ? `${cause}; its log holds no error` : `${cause}; its last words: ${lines.join().trim()}`;
}
