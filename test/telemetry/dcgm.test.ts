import { afterEach, describe, expect, test } from 'vitest';
import { dcgmBoards, dcgmLimitW, dcgmMissing, dcgmPage, wantedBoards } from '../../src/telemetry/dcgm.ts';
import { openReader } from '../../src/telemetry/sample-source.ts';
import { startSampler } from '../../src/telemetry/sampler.ts';
import {
  constantBoard,
  type FakeExporter,
  type FakeExporterOptions,
  startFakeExporter,
} from '../support/dcgm-exporter.ts';
import { until } from '../support/until.ts';

const [A, B] = ['GPU-aaaaaaaa-0000-0000-0000-000000000001', 'GPU-bbbbbbbb-0000-0000-0000-000000000002'];
let exporter: FakeExporter | null = null;
const start = async (options: FakeExporterOptions) => {
  exporter = await startFakeExporter(options);
  return exporter.url;
};
const address = (url: string, ...uuids: string[]) => ({ kind: 'dcgm', url, uuids }) as const;

afterEach(async () => {
  await exporter?.close();
  exporter = null;
});

describe('a page of the exporter', () => {
  test('is read by board: mJ as they are, W as mW, default limit and driver', async () => {
    const url = await start({ boards: [constantBoard(A, 100, { limitW: 350 })], intervalMs: 100 });
    const [board] = dcgmBoards(await dcgmPage(url));
    expect(board).toMatchObject({ uuid: A, name: 'NVIDIA L40S', driver: '595.58.03', mig: false });
    expect(dcgmLimitW(board!)).toBe(350);
    const reader = await openReader(address(url));
    const [sample] = await reader.read(0n, 'all');
    await reader.close();
    expect(sample).toMatchObject({ powerAverageMw: 100_000, smClockMhz: 1980, temperatureC: 61, board: 0 });
    expect(sample!.energyMj).toBeGreaterThanOrEqual(100_000_000);
    expect(sample!.callNs).toBeGreaterThan(0);
    expect(sample!.powerInstantMw).toBeNaN();
  });

  test('lists a board once per container that uses it: it counts once', async () => {
    const url = await start({ boards: [constantBoard(A, 100, { pods: ['one', 'two'] })], intervalMs: 100 });
    expect(dcgmBoards(await dcgmPage(url))).toHaveLength(1);
  });

  test("DCGM's blank value is no value", async () => {
    const energy = 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION';
    const url = await start({ boards: [constantBoard(A, 100)], intervalMs: 100, blank: [energy] });
    const [board] = dcgmBoards(await dcgmPage(url));
    expect(board!.values.has(energy)).toBe(false);
    expect(dcgmMissing(board!)).toContain('energyMj');
  });

  const FIELD = 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION';
  const line = (value: string, labels = 'gpu="0",UUID="GPU-1"') => `${FIELD}{${labels}} ${value}\n`;

  test.each([
    ['scientific notation', line('1.5e+09'), 1.5e9],
    ['Windows line ends and a stamp', `# HELP ${FIELD} mJ\r\n${line('5 1700000000000').replace('\n', '\r\n')}`, 5],
    ['the same series twice', line('1') + line('2'), 2],
    ['an escaped quote and a brace in a label', line('7', 'UUID="GPU-1",pod="a\\"}b"'), 7],
    ['an older label in lower case', line('8', 'gpu="3",uuid="GPU-1"'), 8],
    ['NaN', line('NaN'), undefined],
    ['a negative value', line('-1'), undefined],
    ['a cut in its last value', line('1234567').slice(0, -4), undefined],
  ])('with %s', (_, text, energyMj) => {
    expect(dcgmBoards(text)[0]?.values.get(FIELD)).toBe(energyMj);
  });

  test('columns that it never fills are known', async () => {
    const url = await start({ boards: [constantBoard(A, 100)], intervalMs: 100 });
    expect(dcgmMissing(dcgmBoards(await dcgmPage(url))[0]!).sort()).toEqual(
      ['enforcedLimitMw', 'memClockMhz', 'powerInstantMw', 'reasons'].sort(),
    );
  });

  test('that splits a board into MIG instances is refused', async () => {
    const url = await start({ boards: [constantBoard(A, 100, { instances: ['3', '5'] })], intervalMs: 100 });
    await expect(openReader(address(url))).rejects.toMatchObject({ code: 'mig_enabled', exitCode: 3 });
  });

  test('with several boards and none named is refused with their UUIDs; named ones are taken in that order', async () => {
    const url = await start({ boards: [constantBoard(A, 100), constantBoard(B, 50)], intervalMs: 100 });
    const boards = dcgmBoards(await dcgmPage(url));
    expect(() => wantedBoards(boards, address(url))).toThrow(new RegExp(`${A}.*${B}`));
    expect(wantedBoards(boards, address(url, B, A)).map((board) => board.uuid)).toEqual([B, A]);
    expect(() => wantedBoards(boards, address(url, 'GPU-none'))).toThrow(/does not show/);
    expect(() => wantedBoards(dcgmBoards('<html>'), address(url))).toThrow(/no energy counter of any board/);
  });

  test('that is not there is an environment error', async () => {
    const url = await start({ boards: [constantBoard(A, 100)], intervalMs: 100 });
    await expect(dcgmPage(`${url}x`)).rejects.toMatchObject({ code: 'dcgm_unreachable', exitCode: 4 });
    await expect(dcgmPage('http://127.0.0.1:1/metrics')).rejects.toMatchObject({ code: 'dcgm_unreachable' });
  });
});

test('the sampler reads two boards per scrape, and an exporter that goes away leaves NaN and a count', async () => {
  const url = await start({ boards: [constantBoard(A, 100), constantBoard(B, 50)], intervalMs: 100 });
  const sampler = await startSampler({
    address: address(url, A, B),
    originNs: process.hrtime.bigint(),
    periodMs: 100,
    spoolPath: null,
  });
  try {
    await until(async () => (await sampler.meanPowerW(0, Number.POSITIVE_INFINITY)) !== null);
    await until(async () => (await sampler.slice(0, Number.POSITIVE_INFINITY)).count >= 20);
    const table = await sampler.slice(0, Number.POSITIVE_INFINITY);
    expect([...table.board.slice(0, 4)]).toEqual([0, 1, 0, 1]);
    const watts = await sampler.meanPowerW(0, Number.POSITIVE_INFINITY);
    expect(watts! / 150).toBeGreaterThan(0.7);
    expect(watts! / 150).toBeLessThan(1.3);
    await exporter!.close();
    const before = table.count;
    await until(async () => {
      const { energyMj } = await sampler.slice(0, Number.POSITIVE_INFINITY);
      return energyMj.slice(before).filter(Number.isNaN).length >= 4;
    });
    expect(Object.keys(sampler.errors()).join()).toMatch(/^scrape: /);
  } finally {
    await sampler.stop();
    exporter = null;
  }
});
