// In which order arms and loads run: seeded shuffles, so that drift does not favour the first name (METHOD 4.4).

import { labelStream, shuffle } from './rng.ts';

/** Order of the arms in a repeat (from 1). `arms` are the ids as listed in the config. */
export function armOrder(seed: number, repeat: number, arms: readonly string[]): string[] {
  return shuffle(arms, labelStream(`seed=${seed}|arms|block=${repeat}`));
}

/** Order of the loads inside the launch of `arm` in a repeat (from 1). `loads` are the ids as listed in the config. */
export function loadOrder(seed: number, repeat: number, arm: string, loads: readonly string[]): string[] {
  return shuffle(loads, labelStream(`seed=${seed}|loads|block=${repeat}|arm=${arm}`));
}
