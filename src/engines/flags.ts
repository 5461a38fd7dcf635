// Engine settings as command-line flags: merged from several sources, never twice, never against the plan.

import { ConfigError, type EngineArgs } from '../core/index.ts';

/** Dashes and underscores mean the same to argparse, up to the first dot of a dotted flag. */
export function flagName(name: string): string {
  const bare = name.replace(/^-+/, '');
  const dot = bare.indexOf('.');
  const head = dot < 0 ? bare : bare.slice(0, dot);
  return head.replaceAll('_', '-') + (dot < 0 ? '' : bare.slice(dot));
}

/** Later sources win over earlier ones, whichever spelling they use. */
export function mergeArgs(...sources: readonly EngineArgs[]): EngineArgs {
  const merged: Record<string, string | number | boolean> = {};
  for (const source of sources) {
    for (const [name, value] of Object.entries(source)) {
      const flag = flagName(name);
      delete merged[flag];
      merged[flag] = value;
    }
  }
  return merged;
}

/**
 * Refuses settings that the plan itself decides: given twice, the last one would win in silence.
 * @param owned flag name to the config field that decides it
 */
export function refuseOwned(args: EngineArgs, owned: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(args)) {
    const field = owned[flagName(name).replace(/^no-/, '')];
    if (field === undefined) continue;
    throw new ConfigError('reserved_engine_arg', `the engine argument "${name}" is decided by ${field}`, {
      advice: `Remove "${name}" from the engine arguments and set ${field} instead.`,
    });
  }
}

/** true: `--flag`, false: `--no-flag`, anything else: `--flag value`. Whole numbers stay plain decimals. */
export function toFlags(args: EngineArgs): string[] {
  return Object.entries(args).flatMap(([name, value]) => {
    const flag = flagName(name);
    if (value === true) return [`--${flag}`];
    if (value === false) return [`--no-${flag}`];
    return [`--${flag}`, String(value)];
  });
}
