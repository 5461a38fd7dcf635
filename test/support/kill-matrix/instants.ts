// When to kill: seeded instants of an arm with lock and cap, some of them inside a journal write, a setter or a restore.

export const TARGETS = ['runner', 'engine', 'sampler', 'watchdog', 'both'] as const;
export type Target = (typeof TARGETS)[number];

/** What the kill is aimed at; `delayMs` is counted from the moment in which that begins. */
export type Aim =
  | 'anywhere'
  | 'journal write'
  | 'setter of the lock'
  | 'setter of the cap'
  | 'restore'
  | 'server start';

export interface Instant {
  readonly target: Target;
  readonly index: number;
  readonly aim: Aim;
  readonly delayMs: number;
  /** For a journal write: which one, counted from 1. */
  readonly write: number;
}

/** Each fsync of the journal takes this long, two per write; the aimed setters and the reset take as long as both. */
export const SLOW_SYNC_MS = 100;
export const SLOW_CALL_MS = 400;
/** From the first change to the end of the arm, about. */
const ARM_MS = 7_500;
/** Writes 1 and 2 come before the first change, 3 to 10 belong to the arm. */
const FIRST_WRITE = 3;
const LAST_WRITE = 10;

const EVERYWHERE: readonly Aim[] = [
  'anywhere',
  'journal write',
  'anywhere',
  'setter of the lock',
  'restore',
  'anywhere',
  'journal write',
  'setter of the cap',
  'anywhere',
  'restore',
];
/** The server lives neither in a setter nor in a restore: both happen around it. */
const WHILE_IT_LIVES: readonly Aim[] = ['anywhere', 'server start', 'anywhere', 'anywhere', 'anywhere'];

/** Mulberry32: a small generator, so that an instant is the same on every machine. */
function uniform(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function instantOf(target: Target, index: number, seed: number): Instant {
  const aims = target === 'engine' ? WHILE_IT_LIVES : EVERYWHERE;
  const next = uniform(seed * 1_000_003 + TARGETS.indexOf(target) * 1009 + index);
  const aim = aims[index % aims.length]!;
  const spanMs: Readonly<Record<Aim, number>> = {
    anywhere: target === 'engine' ? ARM_MS - 1500 : ARM_MS,
    'journal write': 2 * SLOW_SYNC_MS,
    'setter of the lock': SLOW_CALL_MS,
    'setter of the cap': SLOW_CALL_MS,
    restore: SLOW_CALL_MS,
    'server start': 800,
  };
  const delayMs = Math.round(next() * spanMs[aim]);
  const write = FIRST_WRITE + Math.floor(next() * (LAST_WRITE - FIRST_WRITE + 1));
  return { target, index, aim, delayMs, write };
}
