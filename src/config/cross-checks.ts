// What only two keys together can get wrong: names used twice, controls without a board, prompts that do not fit.

import {
  FIRST_LOAD_ORDINAL,
  type LoadSpec,
  meanRequest,
  type PhaseSpec,
  REQUESTS_PER_ATTEMPT,
  saltCounter,
  saltFits,
} from '../core/index.ts';
import { expectedArrivals } from '../workloads/arrivals.ts';
import type { ConfigPath } from './document.ts';
import { checkRequestKeys, longestTotal, requestFields } from './length-keys.ts';
import type { CheckedConfig, ProblemList } from './sections.ts';

/** A cell that turns out invalid is run once more, under attempt 2 (METHOD 3.4). */
const LAST_ATTEMPT = 2;
/** Token ids that one load may hold in memory: 1 GiB. */
const MAX_PLAN_IDS = 2 ** 28;
/** Standard deviations that an arrival count may exceed its mean. */
const COUNT_MARGIN = 6;

/** Checks that need no phase lengths. What had problems of its own is left out. */
export function crossCheck(config: CheckedConfig, list: ProblemList): void {
  uniqueIds('arms', config.armIds, list);
  uniqueIds('loads', config.loadIds, list);
  controlsNeedABoard(config, list);
  worldsDoNotMix(config, list);
  attachedIsLeftAlone(config, list);
  saltsFit(config, list);
  const { model } = config.sections;
  config.loads.forEach((load, index) => {
    if (!load) return;
    // A trace with lengths of its own was held against the model when it was read.
    if (load.trace?.lengths) return;
    checkRequestKeys(load, ['loads', index], list);
    const requests = requestFields(load);
    if (!requests || !model) return;
    const key = load.lengths === undefined ? 'promptTokens' : 'lengths';
    fitsModel(longestTotal(requests), ['loads', index, key], model.maxModelLen, list);
  });
}

function uniqueIds(name: 'arms' | 'loads', ids: readonly unknown[], list: ProblemList): void {
  ids.forEach((id, index) => {
    const before = ids.indexOf(id);
    if (typeof id !== 'string' || before === index) return;
    list.value([name, index, 'id'], `a name of its own: line ${list.lineOf([name, before, 'id'])} has it already`);
  });
}

function controlsNeedABoard({ sections, arms }: CheckedConfig, list: ProblemList): void {
  if (sections.gpu?.kind !== 'none') return;
  arms.forEach((arm, index) => {
    for (const lever of ['lockSmClock', 'powerCapW'] as const) {
      if (arm && arm[lever] !== null) list.value(['arms', index, lever], 'no clock lock or power cap with "gpu: none"');
    }
  });
}

function worldsDoNotMix({ sections }: CheckedConfig, list: ProblemList): void {
  if (!sections.engine || sections.engine.kind === 'mock' || sections.gpu?.kind !== 'simulated') return;
  list.value(['gpu', 'kind'], 'none or nvml: a real engine cannot put its load on a simulated GPU');
}

/** Nothing of a server that is not ours can be set, so its arms cannot differ in it. */
function attachedIsLeftAlone({ sections, arms }: CheckedConfig, list: ProblemList): void {
  const { engine } = sections;
  if (engine?.kind !== 'openai') return;
  if (engine.apiKeyEnv !== null && engine.apiKeyFile !== null) {
    list.value(['engine', 'apiKeyFile'], 'either apiKeyEnv or apiKeyFile');
  }
  arms.forEach((arm, index) => {
    for (const key of ['engineArgs', 'engineEnv'] as const) {
      if (arm && Object.keys(arm[key]).length > 0)
        list.value(['arms', index, key], 'nothing: the server is running already');
    }
  });
}

function saltsFit({ sections, loads }: CheckedConfig, list: ProblemList): void {
  if (!sections.model || loads.length === 0) return;
  const counter = saltCounter(FIRST_LOAD_ORDINAL + loads.length - 1, LAST_ATTEMPT, REQUESTS_PER_ATTEMPT - 1);
  if (saltFits(sections.model.tokenIds, counter)) return;
  let needed = 1;
  while (!saltFits([0, needed], counter)) needed += 1;
  list.value(
    ['model', 'tokenIds'],
    `a range of at least ${needed} ids: with ${loads.length} load(s), fewer cannot make every prompt unique`,
  );
}

/** A prompt and its answer must fit into the model's context together. */
function fitsModel(total: number, path: ConfigPath, maxModelLen: number, list: ProblemList): void {
  if (total <= maxModelLen) return;
  const sum = `together ${total} tokens, more than model.maxModelLen ${maxModelLen}`;
  list.value(path, `a shorter prompt or answer (${sum})`);
}

/** Checks of a load whose phases are known: some requests must arrive, and all of them must fit into a plan. */
export function checkLoadSize(load: LoadSpec, path: ConfigPath, list: ProblemList): void {
  const expected = expectedArrivals(load, load.warmupS + load.windowS + load.tailS);
  if (expected === null) {
    if ((load.requests ?? 0) * meanRequest(load).promptTokens > MAX_PLAN_IDS) {
      list.value([...path, 'requests'], 'fewer or shorter prompts: all of them together would take more than 1 GiB');
    }
    return;
  }
  const atMost = expected + COUNT_MARGIN * Math.sqrt(expected);
  const rate = [...path, load.kind === 'phased' ? 'steps' : load.kind === 'trace' ? 'trace' : 'rate'];
  if ((load.rate ?? 0) * load.windowS < 1) {
    list.value(rate, `at least one arrival in the window of ${load.windowS} s`);
  } else if (atMost > REQUESTS_PER_ATTEMPT) {
    list.value(rate, `fewer arrivals: ${Math.ceil(expected)} over the load, and ${REQUESTS_PER_ATTEMPT} is the most`);
  } else if (atMost * meanRequest(load).promptTokens > MAX_PLAN_IDS) {
    list.value(rate, `fewer or shorter prompts: all prompts of the load together would take more than 1 GiB`);
  }
}

/** Checks of the soak against the server's limits and itself; lengths that it takes from a load were checked there. */
export function checkSoak(
  { soak }: PhaseSpec,
  given: { readonly promptTokens?: number | undefined; readonly outputTokens?: number | undefined },
  limits: { readonly maxModelLen: number; readonly maxSeqs: number },
  list: ProblemList,
): void {
  const path = ['phases', 'soak'];
  if (soak.maxS === 0 && soak.minS === 0) return;
  if (soak.concurrency > limits.maxSeqs) {
    list.value([...path, 'concurrency'], `at most engine.maxSeqs, ${limits.maxSeqs}`);
  }
  if (soak.maxS < soak.minS) list.value([...path, 'maxS'], `at least soak.minS, ${soak.minS} s`);
  else if (soak.maxS < 2 * soak.compareS) {
    list.value([...path, 'maxS'], `at least two spans of soak.compareS, ${2 * soak.compareS} s`);
  }
  const own = given.promptTokens !== undefined ? 'promptTokens' : 'outputTokens';
  if (given[own] !== undefined)
    fitsModel(soak.promptTokens + soak.outputTokens, [...path, own], limits.maxModelLen, list);
}
