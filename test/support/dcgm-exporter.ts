// A stand-in for dcgm-exporter: the same text, and like it a cache that is refreshed every so often, whoever asks.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FakeBoard {
  readonly uuid: string;
  /** Cumulative energy, mJ, and power, W, at an absolute CLOCK_MONOTONIC instant. */
  readonly energyMj: (atNs: bigint) => number | Promise<number>;
  readonly powerW: (atNs: bigint) => number | Promise<number>;
  /** Ids of MIG instances, each of which repeats the board's figures. */
  readonly instances?: readonly string[];
  /** Containers that use the board: its series is listed once for each. */
  readonly pods?: readonly string[];
  readonly limitW?: number;
}

export interface FakeExporterOptions {
  readonly boards: readonly FakeBoard[];
  /** The exporter's collection interval (-c), ms. */
  readonly intervalMs: number;
  /** Fields left out or told as blank. */
  readonly without?: readonly string[];
  readonly blank?: readonly string[];
}

export interface FakeExporter {
  readonly url: string;
  scrapes(): number;
  close(): Promise<void>;
}

const BLANK = '9223372036854775794';
const HELP: Readonly<Record<string, readonly [string, string]>> = {
  DCGM_FI_DEV_SM_CLOCK: ['gauge', 'SM clock frequency (in MHz).'],
  DCGM_FI_DEV_GPU_TEMP: ['gauge', 'GPU temperature (in C).'],
  DCGM_FI_DEV_POWER_USAGE: ['gauge', 'Power draw (in W).'],
  DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION: ['counter', 'Total energy consumption since boot (in mJ).'],
  DCGM_FI_DEV_GPU_UTIL: ['gauge', 'GPU utilization (in %).'],
  DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF: ['gauge', 'Default power limit (in W).'],
};

export async function startFakeExporter(options: FakeExporterOptions): Promise<FakeExporter> {
  const { boards, intervalMs, without = [], blank = [] } = options;
  let page = '';
  let scrapes = 0;
  const refresh = async () => {
    const nowNs = process.hrtime.bigint();
    const rows = await Promise.all(
      boards.map(async (board) => ({
        board,
        energyMj: await board.energyMj(nowNs),
        powerW: await board.powerW(nowNs),
      })),
    );
    page = Object.entries(HELP)
      .filter(([field]) => !without.includes(field))
      .map(([field, [type, help]]) => {
        const lines = rows.flatMap(({ board, energyMj, powerW }, index) => {
          const value = {
            DCGM_FI_DEV_SM_CLOCK: '1980',
            DCGM_FI_DEV_GPU_TEMP: '61',
            DCGM_FI_DEV_POWER_USAGE: powerW.toFixed(6),
            DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION: String(Math.floor(energyMj)),
            DCGM_FI_DEV_GPU_UTIL: '95',
            DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF: board.limitW?.toFixed(6),
          }[field];
          if (value === undefined) return [];
          return labelSets(board, index).map(
            (labels) => `${field}{${labels}} ${blank.includes(field) ? BLANK : value}`,
          );
        });
        return lines.length === 0 ? '' : `# HELP ${field} ${help}\n# TYPE ${field} ${type}\n${lines.join('\n')}\n`;
      })
      .join('');
  };
  await refresh();
  const timer = setInterval(() => void refresh(), intervalMs);
  const server = createServer((request, response) => {
    scrapes += 1;
    response.statusCode = request.url === '/metrics' ? 200 : 404;
    response.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8');
    response.end(request.url === '/metrics' ? page : 'not found');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`,
    scrapes: () => scrapes,
    async close() {
      clearInterval(timer);
      await closed(server);
    },
  };
}

function labelSets({ uuid, instances, pods }: FakeBoard, index: number): string[] {
  const common = `gpu="${index}",UUID="${uuid}",pci_bus_id="00000000:0${index}:00.0",device="nvidia${index}",modelName="NVIDIA L40S"`;
  const rest = 'Hostname="server",DCGM_FI_DRIVER_VERSION="595.58.03"';
  if (instances) return instances.map((id) => `${common},GPU_I_PROFILE="1g.10gb",GPU_I_ID="${id}",${rest}`);
  if (pods) return pods.map((pod) => `${common},${rest},container="vllm",namespace="serving",pod="${pod}"`);
  return [`${common},${rest}`];
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** A board that draws constant power, its counter in steps of 100 ms as a real one's. */
export function constantBoard(uuid: string, watts: number, more: Partial<FakeBoard> = {}): FakeBoard {
  const startNs = process.hrtime.bigint() - 1_000_000_000_000n;
  const stepNs = 100_000_000n;
  return {
    uuid,
    energyMj: (atNs) => Number(((atNs - startNs) / stepNs) * stepNs) * (watts / 1e6),
    powerW: () => watts,
    ...more,
  };
}
