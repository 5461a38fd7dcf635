// Board energy and power from a dcgm-exporter's Prometheus text, for a server on another machine.
//
// The exporter gives no time stamps of its own: a reading is stamped when its response has ended. Energy is in mJ, power
// in W; a board is known by its UUID, and the same board may be listed once per container that uses it.

import { Agent as HttpAgent, get as httpGet, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, get as httpsGet } from 'node:https';
import { EnvironmentError, type GpuSample, type GpuSampleColumn, messageOf, RefusedError } from '../core/index.ts';
import { labelsOf, nameOf, parsePrometheus } from '../core/prometheus.ts';
import { countError, emptySample } from '../gpu/sample.ts';
import type { DcgmAddress, SampleReader } from './sample-source.ts';

const TIMEOUT_MS = 5_000;
const MAX_PAGE_BYTES = 16 * 2 ** 20;
/** From here on DCGM's integers and doubles say that there is no value (dcgm_fields.h). */
const BLANK_INT64 = 2 ** 63;
const BLANK_DOUBLE = 2 ** 47;
const MIG_LABEL = 'GPU_I_ID';
const LIMIT_FIELD = 'DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF';

/** Fields by column of a sample, with the factor into the column's unit. */
const COLUMNS: readonly (readonly [GpuSampleColumn, string, number])[] = [
  ['energyMj', 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION', 1],
  ['powerAverageMw', 'DCGM_FI_DEV_POWER_USAGE', 1000],
  ['powerInstantMw', 'DCGM_FI_DEV_POWER_USAGE_INSTANT', 1000],
  ['smClockMhz', 'DCGM_FI_DEV_SM_CLOCK', 1],
  ['memClockMhz', 'DCGM_FI_DEV_MEM_CLOCK', 1],
  ['temperatureC', 'DCGM_FI_DEV_GPU_TEMP', 1],
  ['reasons', 'DCGM_FI_DEV_CLOCK_THROTTLE_REASONS', 1],
  ['reasons', 'DCGM_FI_DEV_CLOCKS_EVENT_REASONS', 1],
  ['utilizationPct', 'DCGM_FI_DEV_GPU_UTIL', 1],
  ['enforcedLimitMw', 'DCGM_FI_DEV_ENFORCED_POWER_LIMIT', 1000],
];

/** What one page says of one board. */
export interface DcgmBoard {
  readonly uuid: string;
  readonly name: string;
  readonly driver: string;
  /** Set where the page splits the board into MIG instances, each of which repeats the whole board's energy. */
  readonly mig: boolean;
  readonly values: ReadonlyMap<string, number>;
}

/**
 * The boards of a page in its order, by UUID; a series without one is left out, and so is a last line without an end: of
 * a page that was cut it may hold the first digits of its value.
 */
export function dcgmBoards(text: string): DcgmBoard[] {
  const boards = new Map<string, { name: string; driver: string; mig: boolean; values: Map<string, number> }>();
  for (const [series, value] of parsePrometheus(text.slice(0, text.lastIndexOf('\n') + 1))) {
    const name = nameOf(series);
    if (!name.startsWith('DCGM_FI_')) continue;
    const labels = labelsOf(series);
    const uuid = labels.get('UUID') ?? labels.get('uuid');
    if (uuid === undefined || uuid === '') continue;
    const board = boards.get(uuid) ?? { name: '', driver: '', mig: false, values: new Map<string, number>() };
    boards.set(uuid, board);
    board.name ||= labels.get('modelName') ?? '';
    board.driver ||= labels.get('DCGM_FI_DRIVER_VERSION') ?? '';
    board.mig ||= (labels.get(MIG_LABEL) ?? '') !== '';
    if (isKnown(value)) board.values.set(name, value);
  }
  return [...boards].map(([uuid, board]) => ({ uuid, ...board }));
}

const isKnown = (value: number): boolean =>
  Number.isFinite(value) && value >= 0 && value < BLANK_INT64 && !isBlankDouble(value);

/** The blank double and its kin lie close above 2^47; a counter of mJ passes there once in 4,500 years of 1 kW. */
const isBlankDouble = (value: number): boolean => value >= BLANK_DOUBLE && value < BLANK_DOUBLE + 16;

/** The board's default power limit where the exporter was told to give it, W. */
export function dcgmLimitW({ values }: DcgmBoard): number | null {
  return values.get(LIMIT_FIELD) ?? null;
}

/** Columns that no page of this board fills. */
export const dcgmMissing = ({ values }: DcgmBoard): GpuSampleColumn[] => {
  const given = new Set(COLUMNS.filter(([, field]) => values.has(field)).map(([column]) => column));
  return [...new Set(COLUMNS.map(([column]) => column))].filter((column) => !given.has(column));
};

/**
 * The wanted boards of a page, in the order asked for.
 * @throws RefusedError `dcgm_no_counter`, `dcgm_which_board`, `dcgm_board_unknown`, `mig_enabled`
 */
export function wantedBoards(boards: readonly DcgmBoard[], { url, uuids }: DcgmAddress): DcgmBoard[] {
  if (boards.length === 0) {
    throw new RefusedError('dcgm_no_counter', `${url} shows no energy counter of any board.`, {
      advice:
        'Give the metrics page of dcgm-exporter on the machine of the server; its field list must have DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION.',
    });
  }
  const known = boards.map(({ uuid, name }) => `${uuid} (${name})`).join(', ');
  if (uuids.length === 0 && boards.length !== 1) {
    throw new RefusedError('dcgm_which_board', `${url} shows ${known}.`, {
      advice: 'Name the boards that the server runs on: uuids in the config, or #UUID,UUID behind the URL.',
    });
  }
  const wanted = uuids.length === 0 ? boards : uuids.map((uuid) => boards.find((board) => board.uuid === uuid));
  const found = wanted.filter((board) => board !== undefined);
  if (found.length < wanted.length) {
    throw new RefusedError('dcgm_board_unknown', `${url} does not show every board asked for, only ${known}.`, {
      advice: 'Give UUIDs as `nvidia-smi -L` prints them on the server.',
    });
  }
  const split = found.find((board) => board.mig);
  if (split !== undefined) {
    throw new RefusedError('mig_enabled', `${split.uuid} is split into MIG instances.`, {
      advice: 'Their energy cannot be told apart: switch MIG off on that board, or measure without energy.',
    });
  }
  return found;
}

/** Fetches a page; the promise resolves when its last byte has arrived. */
export function fetchPage(url: string, agent?: HttpAgent | HttpsAgent): Promise<string> {
  const get = url.startsWith('https:') ? httpsGet : httpGet;
  return new Promise((resolve, reject) => {
    const request = get(url, { agent, timeout: TIMEOUT_MS }, (response) => {
      collect(response).then(resolve, reject);
    });
    request.on('timeout', () => request.destroy(new Error(`no answer for ${TIMEOUT_MS} ms`)));
    request.on('error', reject);
  });
}

async function collect(response: IncomingMessage): Promise<string> {
  if (response.statusCode !== 200) {
    response.resume();
    throw new Error(`HTTP ${response.statusCode}`);
  }
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response) {
    bytes += (part as Buffer).length;
    if (bytes > MAX_PAGE_BYTES) throw new Error(`a page of more than ${MAX_PAGE_BYTES} bytes`);
    parts.push(part as Buffer);
  }
  return Buffer.concat(parts).toString('utf8');
}

/** One page, now. @throws EnvironmentError `dcgm_unreachable` */
export async function dcgmPage(url: string): Promise<string> {
  try {
    return await fetchPage(url);
  } catch (cause) {
    throw new EnvironmentError('dcgm_unreachable', `No metrics from ${url}: ${messageOf(cause)}`, {
      advice: 'Start dcgm-exporter on the server and open its port (9400) to this machine, or leave energy out.',
      cause,
    });
  }
}

class DcgmReader implements SampleReader {
  readonly blocks = false;
  readonly #url: string;
  readonly #uuids: readonly string[];
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #errors = new Map<string, number>();

  constructor(url: string, uuids: readonly string[]) {
    this.#url = url;
    this.#uuids = uuids;
    this.#agent = new (url.startsWith('https:') ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: 1 });
  }

  /** Every reading fills all columns that the exporter has. */
  async read(originNs: bigint): Promise<readonly GpuSample[]> {
    const beganNs = process.hrtime.bigint();
    let boards: DcgmBoard[] = [];
    let failure: string | null = null;
    let endedNs = beganNs;
    try {
      const text = await fetchPage(this.#url, this.#agent);
      endedNs = process.hrtime.bigint();
      boards = dcgmBoards(text);
    } catch (error) {
      endedNs = process.hrtime.bigint();
      failure = messageOf(error);
    }
    if (failure !== null) countError(this.#errors, `scrape: ${failure}`);
    return this.#uuids.map((uuid, number) => {
      const board = boards.find((each) => each.uuid === uuid);
      if (board === undefined && failure === null) countError(this.#errors, `scrape: ${uuid} is not on the page`);
      const [atNs, callNs] = [Number(endedNs - originNs), Number(endedNs - beganNs)];
      return { ...emptySample(), ...columnsOf(board), atNs, callNs, board: number };
    });
  }

  errors(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#errors);
  }

  async close(): Promise<void> {
    this.#agent.destroy();
  }
}

function columnsOf(board: DcgmBoard | undefined): Partial<GpuSample> {
  if (board === undefined || board.mig) return {};
  const columns: Partial<GpuSample> = {};
  for (const [column, field, factor] of COLUMNS) {
    const value = board.values.get(field);
    if (value !== undefined) columns[column] = value * factor;
  }
  return columns;
}

/** Rejects with EnvironmentError when the exporter does not answer, RefusedError when its boards cannot be used. */
export async function openDcgm(address: DcgmAddress): Promise<SampleReader> {
  const boards = wantedBoards(dcgmBoards(await dcgmPage(address.url)), address);
  return new DcgmReader(
    address.url,
    boards.map((board) => board.uuid),
  );
}
