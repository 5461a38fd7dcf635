// How the mock engine is told to misbehave: `--fault NAME[:VALUE]`, any number of them.
//
// of the process
//   die_at_start[:CODE]   prints an engine-start failure and exits with CODE (default 1) before it is ready
//   never_ready           the port stays closed for ever
//   die_after:S           SIGKILL to itself S seconds after it became ready: nothing is said or closed
//   engine_dead_after:S   the core dies: streams end with an in-band error and [DONE] under status 200, /health
//                         answers 503 for 4 s, then exit code 0
//   hang_after:S          connections are accepted and nothing is answered or sent any more
//   hang_on_term          SIGTERM does not end it while a stream is in flight
// of a request, each with probability P (first match in this order, seeded)
//   http_503:P            503 before anything else
//   error_in_band:P       after half of the tokens an error event and [DONE], under status 200
//   reset:P               after half of the tokens the connection is reset
//   truncate:P            after half of the tokens the connection closes without an end
//   stall:P               after half of the tokens nothing more is sent, and the connection stays open

import { ConfigError } from '../core/index.ts';
import { uniform } from './random.ts';

export const REQUEST_FAULTS = ['http_503', 'error_in_band', 'reset', 'truncate', 'stall'] as const;
export type RequestFault = (typeof REQUEST_FAULTS)[number];

export interface EngineFaults {
  readonly dieAtStart: number | null;
  readonly neverReady: boolean;
  readonly dieAfterS: number | null;
  readonly engineDeadAfterS: number | null;
  readonly hangAfterS: number | null;
  readonly hangOnTerm: boolean;
  /** The fault of the next request, if any. */
  nextRequestFault(): RequestFault | null;
}

const PROCESS_FAULTS = ['die_at_start', 'never_ready', 'die_after', 'engine_dead_after', 'hang_after', 'hang_on_term'];

function invalid(text: string, expected: string): ConfigError {
  return new ConfigError('bad_fault', `--fault '${text}': ${expected}`, {
    advice: `Known faults: ${[...PROCESS_FAULTS, ...REQUEST_FAULTS].join(', ')}.`,
  });
}

function parseOne(text: string): readonly [string, number | null] {
  const [name = '', value] = text.split(':', 2);
  const known = PROCESS_FAULTS.includes(name) || (REQUEST_FAULTS as readonly string[]).includes(name);
  if (!known) throw invalid(text, 'there is no such fault');
  if (value === undefined) return [name, null];
  const number = value === '' ? Number.NaN : Number(value);
  if (!(number >= 0)) throw invalid(text, 'the value is not a number from 0 up');
  return [name, number];
}

/** Reads fault flags. Throws ConfigError on an unknown name, a missing or a bad value. */
export function parseEngineFaults(texts: readonly string[], seed: number): EngineFaults {
  const given = new Map(texts.map(parseOne));
  const seconds = (name: string): number | null => {
    if (given.get(name) === null) throw invalid(name, `expected ${name}:SECONDS`);
    return given.get(name) ?? null;
  };
  const chances = REQUEST_FAULTS.map((name) => {
    const chance = given.get(name);
    if (chance === null || (chance ?? 0) > 1) throw invalid(name, `expected ${name}:PROBABILITY in 0..1`);
    return [name, chance ?? 0] as const;
  });
  const next = uniform(seed);
  return {
    dieAtStart: given.has('die_at_start') ? (given.get('die_at_start') ?? 1) : null,
    neverReady: given.has('never_ready'),
    dieAfterS: seconds('die_after'),
    engineDeadAfterS: seconds('engine_dead_after'),
    hangAfterS: seconds('hang_after'),
    hangOnTerm: given.has('hang_on_term'),
    nextRequestFault: () => chances.find(([, chance]) => next() < chance)?.[0] ?? null,
  };
}
