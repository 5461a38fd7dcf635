// What `tokbench load` was told, turned into the experiment that it means.

import { randomInt } from 'node:crypto';
import { resolve } from 'node:path';
import { type AttachedExperiment, type AttachedLoad, attachedExperiment } from '../config/attached-load.ts';
import { isSecretHeader } from '../config/fields.ts';
import { ConfigError, DEFAULT_SLO, type GpuSpec, parseServerUrl, type Slo } from '../core/index.ts';
import { windowOfPrompts } from '../runner/prompt-count.ts';

const OPEN_OR_CLOSED =
  'An open loop has a rate and no limit on what is in flight; a closed loop has so many slots, and its rate is a result.';
const DATASETS =
  'Give random (no file), custom (a JSONL file of your own prompts) or sharegpt, the last two with --dataset-path.';
const NUM_PROMPTS =
  'So many prompts are the whole load: the window opens with the first and closes with the last of them.';

export interface LoadFlags {
  readonly baseUrl: string;
  readonly model: string;
  readonly requestRate?: number;
  readonly burstiness?: number;
  readonly maxConcurrency?: number;
  readonly numPrompts?: number;
  readonly duration?: number;
  readonly warmup?: number;
  readonly tail?: number;
  readonly drain?: number;
  readonly randomInputLen: number;
  readonly randomOutputLen: number;
  readonly tokenIds: string;
  readonly ignoreEos?: boolean;
  readonly endpoint: string;
  readonly chat?: boolean;
  readonly tokenizer?: string;
  readonly datasetName?: string;
  readonly datasetPath?: string;
  readonly randomPrefixLen?: number;
  readonly goodput?: readonly string[];
  readonly seed?: number;
  readonly apiKeyEnv?: string;
  readonly apiKeyFile?: string;
  readonly header: readonly string[];
  readonly extraBody?: string;
  readonly caFile?: string;
  readonly insecure?: boolean;
  readonly gpu?: string;
  readonly energy?: string;
  readonly boardLimit?: number;
  readonly preflight?: number;
  readonly rapl?: boolean;
  readonly meterCsv?: string;
  readonly soak: number;
  readonly price?: number;
  readonly workers: number;
  readonly out?: string;
  readonly requestsCsv?: string;
  readonly calibrate?: boolean;
  readonly report?: boolean;
  readonly json?: boolean;
}

const ENERGY_SOURCES =
  'Give none, nvml or nvml:UUID,UUID of the boards that the server runs on, or --energy dcgm:URL of the exporter on its machine.';

/**
 * The experiment that the flags describe.
 * @param environment takes the values of secret headers that were given in full; they must never reach a file
 * @throws ConfigError `bad_flag`, or what the config says of the values
 */
export function experimentOfFlags(
  flags: LoadFlags,
  environment: Record<string, string | undefined>,
): AttachedExperiment {
  const url = parseServerUrl(flags.baseUrl);
  if (typeof url === 'string') throw badFlag('--base-url', url, 'Give for example http://127.0.0.1:8000.');
  const input: AttachedLoad = {
    engine: {
      baseUrl: flags.baseUrl,
      apiKeyEnv: flags.apiKeyEnv ?? null,
      apiKeyFile: pathOf(flags.apiKeyFile),
      headers: headersOf(flags.header, environment),
      caFile: pathOf(flags.caFile),
      insecure: flags.insecure ?? false,
      tokenizer: pathOf(flags.tokenizer),
      extraBody: extraBodyOf(flags.extraBody),
    },
    servedName: flags.model,
    tokenIds: tokenIdsOf(flags.tokenIds),
    seed: flags.seed ?? randomInt(2 ** 31),
    slo: flags.goodput === undefined ? null : sloOf(flags.goodput),
    gpu: gpuOf(flags),
    preflightS: flags.preflight ?? null,
    otherScopes: { rapl: flags.rapl ?? false, meterCsv: pathOf(flags.meterCsv) },
    workers: flags.workers,
    load: { ...arrivalsOf(flags), ...lengthsOf(flags), ...promptsOf(flags), ...phasesOf(flags) },
    soakS: flags.soak,
  };
  const written = experimentOf(input);
  const { numPrompts, requestRate } = flags;
  if (numPrompts === undefined || requestRate === undefined) return written;
  const windowS = windowOfPrompts(written.experiment, numPrompts);
  return experimentOf({ ...input, load: { ...input.load, windowS } });
}

/** Which flag gave the value of a key of the config. */
const FLAG_OF_KEY: Readonly<Record<string, string>> = {
  'loads[0].rate': '--request-rate',
  'loads[0].burstiness': '--burstiness',
  'loads[0].concurrency': '--max-concurrency',
  'loads[0].promptTokens': '--random-input-len',
  'loads[0].outputTokens': '--random-output-len',
  'loads[0].warmupS': '--warmup',
  'loads[0].windowS': '--duration',
  'loads[0].tailS': '--tail',
  'loads[0].drainS': '--drain',
  'loads[0].prompts.path': '--dataset-path',
  'model.servedName': '--model',
  'model.tokenIds': '--token-ids',
  'engine.apiKeyEnv': '--api-key-env',
  'engine.apiKeyFile': '--api-key-file',
  'engine.headers': '--header',
  'engine.extraBody': '--extra-body',
  'slo.ttftMs': '--goodput ttft',
  'slo.tpotMs': '--goodput tpot',
  'phases.soak.minS': '--soak',
  'gpu.uuids': '--gpu',
  'gpu.url': '--energy',
  'gpu.boardLimitW': '--board-limit',
  'phases.preflightS': '--preflight',
  'otherScopes.meterCsv': '--meter-csv',
  loadWorkers: '--workers',
};

/** What the config says of a value, said of the flag that gave it. */
function experimentOf(input: AttachedLoad): AttachedExperiment {
  try {
    return attachedExperiment(input, 'flags');
  } catch (error) {
    if (!(error instanceof ConfigError) || error.code !== 'config_invalid') throw error;
    const lines = error.message.split('\n').map((line) => line.replace(/^flags:\d+:\d+: /, ''));
    const named = lines.map((line) => {
      const key = Object.keys(FLAG_OF_KEY).find((each) => line.startsWith(each));
      return key === undefined ? line : line.replace(key, FLAG_OF_KEY[key]!);
    });
    throw new ConfigError('bad_flag', named.join('\n'), { advice: "See 'tokbench load --help'.", cause: error });
  }
}

export function badFlag(flag: string, problem: string, advice: string): ConfigError {
  return new ConfigError('bad_flag', `${flag}: ${problem}`, { advice });
}

const pathOf = (path: string | undefined): string | null => (path === undefined ? null : resolve(path));

/** The name of the load tells what it offers: `r100` or `c32`. Arrivals and prompts are seeded by it too. */
function arrivalsOf({
  requestRate,
  burstiness,
  maxConcurrency,
  numPrompts,
}: LoadFlags): { id: string } & Record<string, unknown> {
  if (requestRate !== undefined && maxConcurrency !== undefined) {
    throw badFlag('--request-rate', 'cannot be combined with --max-concurrency', OPEN_OR_CLOSED);
  }
  if (maxConcurrency !== undefined) {
    return { id: `c${maxConcurrency}`, kind: 'closed', concurrency: maxConcurrency, requests: numPrompts };
  }
  if (requestRate === undefined)
    throw badFlag('--request-rate', 'missing, and so is --max-concurrency', OPEN_OR_CLOSED);
  const id = `r${String(requestRate).replaceAll(/[^0-9a-z-]/g, '_')}`;
  if (burstiness === undefined || burstiness === 1) return { id, rate: requestRate };
  return { id, kind: 'gamma', rate: requestRate, burstiness };
}

function lengthsOf(flags: LoadFlags): { promptTokens: number; outputTokens: number } & Record<string, unknown> {
  return {
    promptTokens: flags.randomInputLen,
    outputTokens: flags.randomOutputLen,
    ...(isChat(flags) ? { endpoint: 'chat' } : {}),
    ...(flags.ignoreEos === false ? { ignoreEos: false } : {}),
  };
}

function isChat({ endpoint, chat }: LoadFlags): boolean {
  const path = endpoint.replace(/\/+$/, '');
  if (path.endsWith('/chat/completions')) return true;
  if (path.endsWith('/completions')) return chat ?? false;
  throw badFlag('--endpoint', `'${endpoint}' is not known`, 'Give /v1/completions or /v1/chat/completions.');
}

function promptsOf({ datasetName = 'random', datasetPath, randomPrefixLen, randomInputLen }: LoadFlags) {
  if (datasetName === 'random') {
    if (datasetPath !== undefined) throw badFlag('--dataset-path', 'the random dataset is no file', DATASETS);
    const sharedPrefixShare = (randomPrefixLen ?? 0) / randomInputLen;
    return sharedPrefixShare === 0 ? {} : { prompts: { kind: 'ids', sharedPrefixShare } };
  }
  const kind = datasetName === 'custom' ? 'jsonl' : datasetName;
  if (kind !== 'jsonl' && kind !== 'sharegpt')
    throw badFlag('--dataset-name', `'${datasetName}' is not known`, DATASETS);
  if (datasetPath === undefined) throw badFlag('--dataset-path', 'missing', DATASETS);
  return { prompts: { kind, path: resolve(datasetPath) } };
}

function phasesOf({ duration, warmup, tail, drain, numPrompts }: LoadFlags) {
  if (numPrompts === undefined) return { warmupS: warmup, windowS: duration, tailS: tail, drainS: drain };
  if (duration === undefined && !warmup && !tail) return { warmupS: 0, tailS: 0, drainS: drain };
  throw badFlag(
    '--num-prompts',
    'cannot be combined with --duration, nor with a --warmup or --tail above 0',
    NUM_PROMPTS,
  );
}

function tokenIdsOf(text: string): readonly [number, number] {
  const [lo, hi, ...rest] = text.split(',').map(Number);
  if (rest.length === 0 && Number.isInteger(lo) && Number.isInteger(hi)) return [lo!, hi!];
  throw badFlag(
    '--token-ids',
    `'${text}' is no range`,
    'Give two whole numbers such as 256,32000: ids from the first up to, not including, the second.',
  );
}

function sloOf(limits: readonly string[]): Slo {
  const values = new Map<string, number>();
  for (const limit of limits.flatMap((text) => text.split(/[\s,]+/))) {
    const [name = '', value = ''] = limit.split(':', 2);
    if (!['ttft', 'tpot'].includes(name) || !(Number(value) > 0)) {
      throw badFlag(
        '--goodput',
        `'${limit}' is not a limit`,
        'Give ttft:MS and tpot:MS, for example --goodput ttft:1000 tpot:50. There is no promise on E2E here.',
      );
    }
    values.set(name, Number(value));
  }
  return { ttftMs: values.get('ttft') ?? DEFAULT_SLO.ttftMs, tpotMs: values.get('tpot') ?? DEFAULT_SLO.tpotMs };
}

function gpuOf({ gpu = 'none', energy, boardLimit }: LoadFlags): GpuSpec {
  if (energy !== undefined && gpu !== 'none')
    throw badFlag('--energy', 'cannot be combined with --gpu', ENERGY_SOURCES);
  const text = energy ?? gpu;
  if (text === 'none') return { kind: 'none' };
  const [kind, rest = ''] = text.split(/:(.*)/s);
  const boardLimitW = boardLimit ?? null;
  if (kind === 'nvml') return { kind: 'nvml', uuids: listOf(rest), samplePeriodMs: null };
  if (kind === 'dcgm' && energy !== undefined) {
    const [url = '', uuids = ''] = rest.split('#');
    return { kind: 'dcgm', url, uuids: listOf(uuids), boardLimitW };
  }
  throw badFlag(energy === undefined ? '--gpu' : '--energy', `'${text}' is not known`, ENERGY_SOURCES);
}

const listOf = (text: string): string[] => text.split(',').filter((part) => part !== '');

function extraBodyOf(text: string | undefined): Record<string, unknown> {
  if (text === undefined) return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw badFlag('--extra-body', 'not a JSON object', `Quote it for the shell: --extra-body '{"top_k": 1}'.`);
}

const ENV_REFERENCE = /\$\{[A-Za-z_][A-Za-z0-9_]*\}/;

function headersOf(lines: readonly string[], environment: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.search(/[:=]/);
      const name = line.slice(0, Math.max(0, colon)).trim();
      const value = line.slice(colon + 1).trim();
      if (colon < 1) throw badFlag('--header', 'a header without a name', "Give 'Name: value'.");
      return [name, isSecretHeader(name) && !ENV_REFERENCE.test(value) ? hidden(name, value, environment) : value];
    }),
  );
}

/** A secret that was given in full goes into the environment of this process, and only its name into the config. */
function hidden(name: string, value: string, environment: Record<string, string | undefined>): string {
  const variable = `HEADER_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`;
  environment[variable] = value;
  return `\${${variable}}`;
}
