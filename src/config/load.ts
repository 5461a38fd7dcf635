// The way into a config file: read it, check it, fill in every default, resolve its paths.

import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { ConfigError, type Experiment, meanRequest, messageOf } from '../core/index.ts';
import { arriving } from './arrival-keys.ts';
import { fitArrivals } from './arrivals-fit.ts';
import { checkLoadSize, checkSoak, crossCheck } from './cross-checks.ts';
import { readDocument } from './document.ts';
import { requestFields } from './length-keys.ts';
import { launchPhases, loadPhases, PhaseJudge } from './phases.ts';
import { configError } from './problem.ts';
import { resolvePaths } from './resolve-paths.ts';
import { type CheckedConfig, checkSections, ProblemList } from './sections.ts';

const MAX_FILE_BYTES = 1024 * 1024;

export interface LoadedExperiment {
  readonly experiment: Experiment;
  /** The file's text, unchanged. */
  readonly text: string;
  /** SHA-256, hex, of the file's bytes. */
  readonly sha256: string;
  /** Absolute path of the file. */
  readonly path: string;
}

/**
 * Reads and checks a config file.
 * @throws ConfigError `config_missing`, `config_unreadable`, `config_not_text`, and what parseExperiment throws.
 */
export async function loadExperiment(path: string): Promise<LoadedExperiment> {
  const bytes = await readBytes(path);
  const text = decode(bytes, path);
  const experiment = parseExperiment(text, path);
  return { experiment, text, sha256: createHash('sha256').update(bytes).digest('hex'), path: resolve(path) };
}

/**
 * Checks the text of a config file; relative paths in it count from the folder of `path`.
 * @throws ConfigError `config_syntax`, `config_empty` or `config_invalid`: one line `file:line:column: ...` per problem.
 */
export function parseExperiment(text: string, path: string): Experiment {
  const document = readDocument(text, path);
  const list = new ProblemList(document);
  const checked = checkSections(document, list);
  crossCheck(checked, list);
  const folder = dirname(resolve(path));
  const experiment = complete(checked, folder, list);
  if (experiment === null || list.problems.length > 0) throw configError('config_invalid', path, list.problems);
  return resolvePaths(experiment, folder);
}

/** The experiment with all defaults; null when a section had problems. Adds the problems of phase lengths. */
function complete({ sections, arms, loads }: CheckedConfig, folder: string, list: ProblemList): Experiment | null {
  const { schema, name, seed, profile, repeats, slo, sensitivitySlos, model, engine, gpu, loadWorkers } = sections;
  const { phases, crosscheck, otherScopes } = sections;
  if (!profile || !slo || !sensitivitySlos) return null;
  const judge = new PhaseJudge(profile, list);
  const slos = { primary: slo, sensitivity: sensitivitySlos };
  const loadSpecs = loads.map((load, index) => {
    const path = ['loads', index];
    const offered = load && arriving(load, path, folder, model?.maxModelLen ?? Number.POSITIVE_INFINITY, list);
    const requests = offered && requestFields({ ...load, ...offered.traced });
    if (!load || !offered || !requests) return undefined;
    const phased = loadPhases(load, offered.part, requests, path, slos, profile, judge);
    const spec = fitArrivals(phased, offered.rows, path, list);
    checkLoadSize(spec, path, list);
    return spec;
  });
  const first = loadSpecs.find((load) => load !== undefined);
  if (!phases || !engine || !gpu || !model || !first) return null;
  const { promptTokens, outputTokens } = meanRequest(first);
  const phaseSpec = launchPhases(
    phases,
    { concurrency: engine.maxSeqs, promptTokens, outputTokens },
    gpu,
    engine,
    judge,
  );
  checkSoak(phaseSpec, phases.soak, { maxModelLen: model.maxModelLen, maxSeqs: engine.maxSeqs }, list);
  if (!schema || !name || seed === undefined || !repeats || !loadWorkers || crosscheck === undefined) return null;
  if (!otherScopes) return null;
  return {
    schema,
    name,
    seed,
    profile,
    shortened: judge.shortened,
    repeats,
    slo,
    sensitivitySlos,
    model,
    engine,
    gpu,
    arms: arms.filter((arm) => arm !== undefined),
    loads: loadSpecs.filter((load) => load !== undefined),
    phases: phaseSpec,
    loadWorkers,
    crosscheck,
    otherScopes,
  };
}

async function readBytes(path: string): Promise<Buffer> {
  const advice = 'Give the path of a config file, for example configs/demo.yaml.';
  try {
    const { size, ...kind } = await describeFile(path);
    if (kind.isDirectory) throw new ConfigError('config_unreadable', `${path} is a folder, not a file`, { advice });
    if (!kind.isReadable) throw new ConfigError('config_unreadable', `${path} is not a regular file`, { advice });
    if (size > MAX_FILE_BYTES) {
      throw new ConfigError('config_unreadable', `${path} has ${size} bytes: too large for a config`, { advice });
    }
    return await readFile(path);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      throw new ConfigError('config_missing', `${path}: no such file`, { advice, cause: error });
    }
    throw new ConfigError('config_unreadable', `${path}: ${messageOf(error)}`, { advice, cause: error });
  }
}

async function describeFile(path: string) {
  const found = await stat(path);
  return { size: found.size, isDirectory: found.isDirectory(), isReadable: found.isFile() || found.isFIFO() };
}

function decode(bytes: Buffer, path: string): string {
  const advice = 'A config is a YAML file in UTF-8; configs/demo.yaml is one to start from.';
  if (bytes.includes(0)) throw new ConfigError('config_not_text', `${path} is a binary file`, { advice });
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new ConfigError('config_not_text', `${path} is not text in UTF-8`, { advice, cause: error });
  }
}
