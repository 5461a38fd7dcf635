// How many sockets does a load need, and may this process open that many?

import { readFileSync } from 'node:fs';
import { EnvironmentError } from '../core/index.ts';

/** Descriptors left for everything else: files, pipes, the sampler. */
const RESERVED = 256;
const SPARE = 50;

/**
 * Sockets to open ahead: min(nofile - 256, ceil(1.5 lambda (T + nP)) + 50), Little's law with half as much again.
 *
 * @param ratePerS lambda, arrivals per second.
 * @param latencyS T + nP, the longest life of a request that keeps its promise.
 * @param nofile soft limit of open files, null when it is not known here.
 * @throws EnvironmentError `too_few_descriptors` when not even the expected number of requests at once fits.
 */
export function socketsNeeded(ratePerS: number, latencyS: number, nofile: number | null): number {
  const wanted = Math.ceil(1.5 * ratePerS * latencyS) + SPARE;
  if (nofile === null) return wanted;
  const expected = Math.ceil(ratePerS * latencyS);
  if (expected > nofile - RESERVED) throw tooFewDescriptors(expected, nofile, wanted);
  return Math.min(nofile - RESERVED, wanted);
}

/**
 * Sockets to open ahead for a closed loop: one for each slot and some spare ones.
 * @throws EnvironmentError `too_few_descriptors`
 */
export function socketsForSlots(slots: number, nofile: number | null): number {
  if (nofile !== null && slots > nofile - RESERVED) throw tooFewDescriptors(slots, nofile, slots + SPARE);
  return Math.min(nofile === null ? Number.POSITIVE_INFINITY : nofile - RESERVED, slots + SPARE);
}

function tooFewDescriptors(atOnce: number, nofile: number, sockets: number): EnvironmentError {
  return new EnvironmentError(
    'too_few_descriptors',
    `about ${atOnce} requests at once need as many sockets, but this process may open only ${nofile} files`,
    { advice: `Run \`ulimit -n ${sockets + RESERVED}\` first, or send less at once.` },
  );
}

/** Soft limit of open files of this process; null where /proc is missing. */
export function openFileLimit(): number | null {
  try {
    const match = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return match === null ? null : Number(match[1]);
  } catch {
    return null;
  }
}
