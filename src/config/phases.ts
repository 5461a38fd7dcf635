// How long each phase lasts: the method's defaults and minima (METHOD 1.1, 1.10, 1.11), and what was shortened.

import {
  type EngineSpec,
  type GpuSpec,
  type LoadSpec,
  type PhaseSpec,
  PLAIN_LOAD,
  type Profile,
  type Slo,
} from '../core/index.ts';
import type { ArrivalPart } from './arrival-keys.ts';
import type { ConfigPath } from './document.ts';
import type { RequestFields } from './length-keys.ts';
import type { LoadInput, Sections } from './schema.ts';
import type { ProblemList } from './sections.ts';

const WARMUP_FLOOR_S = 30;
const TAIL_FLOOR_S = 15;
const DRAIN_S = 60;
const WINDOW_ARRIVALS = 1000;
const WINDOW_CEILING_S = 600;
const WINDOW_FLOOR_S: Readonly<Record<Profile, number>> = { standard: 180, thorough: 300, shortened: 180 };
const SOAK_S = { min: 60, max: 300, compare: 30 };
const PREFLIGHT_S = 5;
const IDLE_S = { bare: 60, settle: 20, measure: 60 };
const GAP_S = 10;
/** Minima such as 1000/3 cannot be written exactly: a millisecond less is no shortening. */
const SLACK_S = 1e-3;

/** Judges given lengths against minima: below one, `shortened` under that profile, else a problem. */
export class PhaseJudge {
  readonly shortened: string[] = [];
  readonly #profile: Profile;
  readonly #list: ProblemList;

  constructor(profile: Profile, list: ProblemList) {
    this.#profile = profile;
    this.#list = list;
  }

  /** The length to use, seconds. `label` names the phase for people. */
  length(label: string, path: ConfigPath, given: number | undefined, minimumS: number): number {
    const lengthS = given ?? minimumS;
    if (lengthS >= minimumS - SLACK_S) return lengthS;
    if (this.#profile === 'shortened') this.shortened.push(`${label} ${show(lengthS)} s < ${show(minimumS)} s`);
    else this.#list.value(path, `at least ${show(minimumS)} s (${label}), or "profile: shortened"`);
    return lengthS;
  }
}

const show = (lengthS: number): string => String(Math.ceil(lengthS * 1000 - 1e-6) / 1000);

/** Seconds from arrival to the last of `tokens` tokens when an SLO is just kept. */
const spanS = (slo: Slo, tokens: number): number => (slo.ttftMs + (tokens - 1) * slo.tpotMs) / 1000;

/**
 * Warm-up, window, tail and drain of a load (METHOD 1.1); the loosest SLO sizes the tail. Unless it is given, the window
 * of a phased load reaches to the end of its steps.
 */
export function loadPhases(
  load: LoadInput,
  part: ArrivalPart,
  requests: RequestFields,
  path: ConfigPath,
  slos: { readonly primary: Slo; readonly sensitivity: readonly Slo[] },
  profile: Profile,
  judge: PhaseJudge,
): LoadSpec {
  const { id } = load;
  const { outputTokens } = requests;
  const loosestS = Math.max(...[slos.primary, ...slos.sensitivity].map((slo) => spanS(slo, outputTokens)));
  const windowS = Math.min(
    WINDOW_CEILING_S,
    Math.max(WINDOW_FLOOR_S[profile], part.rate === null ? 0 : WINDOW_ARRIVALS / part.rate),
  );
  const length = (name: string, key: string, given: number | undefined, minimumS: number) =>
    judge.length(`load ${id} ${name}`, [...path, key], given, minimumS);
  const warmupS = length(
    'warm-up',
    'warmupS',
    load.warmupS,
    Math.max(WARMUP_FLOOR_S, 2 * spanS(slos.primary, outputTokens)),
  );
  const tailS = length('tail', 'tailS', load.tailS, Math.max(TAIL_FLOOR_S, loosestS));
  const stepsS = (part.steps ?? []).reduce((sum, { durationS }) => sum + durationS, 0);
  const reachS = load.windowS ?? Math.max(windowS, stepsS - warmupS - tailS);
  return {
    ...PLAIN_LOAD,
    id,
    ...part,
    ...requests,
    warmupS,
    windowS: length('window', 'windowS', reachS, windowS),
    tailS,
    drainS: length('drain', 'drainS', load.drainS, DRAIN_S),
  };
}

/**
 * The phases around the loads. Without a GPU there is no idle power to measure, so its phases default to 0; and a server
 * that was running already is neither cold nor judged by its power then, so it needs no soak.
 */
export function launchPhases(
  given: NonNullable<Sections['phases']>,
  defaults: { readonly concurrency: number; readonly promptTokens: number; readonly outputTokens: number },
  gpu: GpuSpec,
  engine: Pick<EngineSpec, 'kind'>,
  judge: PhaseJudge,
): PhaseSpec {
  const { soak } = given;
  const energy = gpu.kind === 'none' ? 0 : 1;
  const at = (...keys: string[]) => ['phases', ...keys];
  const bareIdleS = judge.length('bare idle', at('bareIdleS'), given.bareIdleS, energy * IDLE_S.bare);
  const warm = engine.kind === 'openai' && energy === 0 ? 0 : 1;
  const minS = judge.length('soak min', at('soak', 'minS'), soak.minS, warm * SOAK_S.min);
  const longestS = minS === 0 ? 0 : Math.max(SOAK_S.max, minS);
  const maxS = judge.length('soak max', at('soak', 'maxS'), soak.maxS ?? longestS, warm * SOAK_S.max);
  const compareS = judge.length('soak compare', at('soak', 'compareS'), soak.compareS, SOAK_S.compare);
  return {
    preflightS: judge.length('preflight', at('preflightS'), given.preflightS, energy * PREFLIGHT_S),
    bareIdleS,
    soak: {
      concurrency: soak.concurrency ?? defaults.concurrency,
      promptTokens: soak.promptTokens ?? defaults.promptTokens,
      outputTokens: soak.outputTokens ?? defaults.outputTokens,
      minS,
      maxS,
      compareS,
    },
    idleSettleS: judge.length('idle settle', at('idleSettleS'), given.idleSettleS, energy * IDLE_S.settle),
    idleMeasureS: judge.length('idle measure', at('idleMeasureS'), given.idleMeasureS, energy * IDLE_S.measure),
    gapS: judge.length('gap', at('gapS'), given.gapS, GAP_S),
  };
}
