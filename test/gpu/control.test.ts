import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ClockLockSpec } from '../../src/core/index.ts';
import { lockByRights, planControls, probeControl, refuseImpossibleArms } from '../../src/gpu/control.ts';
import type { GpuDevice, GpuLimits } from '../../src/gpu/device.ts';
import { placeHere } from '../../src/gpu/nvml/place.ts';
import { openGpu } from '../../src/gpu/open.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';

const stub = buildNvmlStub();

const limits: GpuLimits = {
  defaultLimitW: 350,
  minLimitW: 100,
  maxLimitW: 400,
  maxSmClockMhz: 1980,
  supportedSmClocksMhz: Array.from({ length: 110 }, (_, index) => 1980 - 15 * index),
};
const boards = [{ limits }];
const arm = { id: 'lock70', lockSmClock: null, powerCapW: null };

describe('planned controls', () => {
  test('an arm without levers plans nothing', () => {
    expect(planControls(arm, boards)).toEqual({ requestedLockMhz: null, lockMhz: null, capW: null });
  });

  test.each([
    [{ fraction: 0.7 }, 1386, 1380],
    [{ fraction: 1 }, 1980, 1980],
    [{ mhz: 1395 }, 1395, 1395],
    [{ mhz: 1394.999 }, 1394.999, 1380],
  ])('%j asks for %f MHz and gets %i MHz', (lockSmClock, requestedLockMhz, lockMhz) => {
    const planned = planControls({ ...arm, lockSmClock }, boards);
    expect(planned.lockMhz).toBe(lockMhz);
    expect(planned.requestedLockMhz).toBeCloseTo(requestedLockMhz, 9);
  });

  test('rounding of fraction times maximum does not cost a step', () => {
    const awkward = { ...limits, maxSmClockMhz: 1410, supportedSmClocksMhz: [1410, 987, 975] };
    expect(0.7 * 1410).toBeLessThan(987);
    expect(planControls({ ...arm, lockSmClock: { fraction: 0.7 } }, [{ limits: awkward }]).lockMhz).toBe(987);
  });

  test.each([{ mhz: 344 }, { mhz: 1995 }, { fraction: 0.1 }, { fraction: 1.1 }])(
    '%j is outside and refused',
    (lock) => {
      expect(() => planControls({ ...arm, lockSmClock: lock }, boards)).toThrow(
        expect.objectContaining({ code: 'control_level', exitCode: 3, message: expect.stringMatching(/345 to 1980/) }),
      );
    },
  );

  test.each([100, 280, 349.5])('a cap of %d W is taken', (powerCapW) => {
    expect(planControls({ ...arm, powerCapW }, boards).capW).toBe(powerCapW);
  });

  test.each([99, 350, 400])('a cap of %d W is refused, never clamped', (powerCapW) => {
    expect(() => planControls({ ...arm, powerCapW }, boards)).toThrow(
      expect.objectContaining({ code: 'control_level', message: expect.stringMatching(/lock70.*350 W/) }),
    );
  });

  test('several boards are set alike or not at all', () => {
    const other = { limits: { ...limits, maxSmClockMhz: 1410, supportedSmClocksMhz: [1410, 1395, 975] } };
    const lock = (spec: ClockLockSpec) => planControls({ ...arm, lockSmClock: spec }, [{ limits }, other]);
    expect(lock({ mhz: 1400 }).lockMhz).toBe(1395);
    expect(() => lock({ fraction: 0.7 })).toThrow(
      expect.objectContaining({
        code: 'control_boards_differ',
        exitCode: 3,
        message: expect.stringMatching(/board 0: 1380 MHz, board 1: 975 MHz/),
      }),
    );
    expect(() => lock({ mhz: 1500 })).toThrow(
      expect.objectContaining({ code: 'control_level', message: expect.stringMatching(/board 1 takes 975 to 1410/) }),
    );
    const small = { limits: { ...limits, defaultLimitW: 200 } };
    expect(() => planControls({ ...arm, powerCapW: 250 }, [{ limits }, small])).toThrow(/board 1 takes 100 W up to/);
  });

  test('a board that tells no clocks refuses every lock', () => {
    const silent = { ...limits, maxSmClockMhz: Number.NaN, supportedSmClocksMhz: [] };
    expect(() => planControls({ ...arm, lockSmClock: { mhz: 1000 } }, [{ limits: silent }])).toThrow(
      expect.objectContaining({ code: 'control_level' }),
    );
  });
});

describe('whether the levers may be used', () => {
  const arms = [
    { ...arm, lockSmClock: { fraction: 0.5 } },
    { ...arm, id: 'cap200', powerCapW: 200 },
    { ...arm, id: 'base' },
  ];
  let gpu: TestGpu;
  const devices: GpuDevice[] = [];
  beforeAll(async () => {
    gpu = await startTestGpu();
    process.env['TOKBENCH_SIM_GPU_SOCKET'] = gpu.socketPath;
  });
  beforeEach(() => gpu.send('fault', { name: 'clear' }));
  afterEach(async () => {
    for (const device of devices.splice(0)) await device.close();
  });
  afterAll(async () => {
    delete process.env['TOKBENCH_SIM_GPU_SOCKET'];
    await gpu.stop();
  });

  const doors = ['simulated', ...(stub.path === null ? [] : ['nvml'])] as const;
  const open = async (door: string): Promise<GpuDevice> => {
    const device = await openGpu(
      door === 'nvml'
        ? { kind: 'nvml', uuid: null, libraryPath: stub.path }
        : { kind: 'simulated', socketPath: gpu.socketPath },
    );
    devices.push(device);
    return device;
  };

  test.each(doors)('a board that takes its own limit again allows both (%s)', async (door) => {
    const device = await open(door);
    await gpu.send('set_limit', { mw: 300_000 });
    await expect(refuseImpossibleArms(arms, [device])).resolves.toEqual([]);
    expect(await gpu.send('state')).toMatchObject({ limit_mw: '300000', locked_max_mhz: '0' });
    await gpu.send('set_limit', { mw: 350_000 });
  });

  test.each(doors)('NO_PERMISSION refuses both arms by name, with what to do (%s)', async (door) => {
    const device = await open(door);
    await gpu.send('fault', { name: 'deny', verb: 'set_limit', code: 4 });
    await expect(refuseImpossibleArms(arms, [device])).rejects.toMatchObject({
      code: 'control_not_permitted',
      exitCode: 3,
      message: expect.stringMatching(/'lock70' locks the clock.*NO_PERMISSION.*'cap200' caps the power.*NO_PERMISSION/),
      advice: expect.stringMatching(/root/),
    });
  });

  test.each(doors)('a board without a limit to set refuses the cap; rights decide over the lock (%s)', async (door) => {
    const device = await open(door);
    await gpu.send('fault', { name: 'deny', verb: 'set_limit', code: 3 });
    const { lock, cap } = await probeControl(device);
    expect(cap).toMatchObject({ may: 'no', why: expect.stringMatching(/NOT_SUPPORTED/) });
    expect(lock).toEqual(lockByRights(placeHere()));
  });

  test.each(doors)('what was not tried is told for a warning, of a board without a limit alone (%s)', async (door) => {
    const device = await open(door);
    expect(await refuseImpossibleArms(arms.slice(0, 1), [device])).toEqual([]);
    await gpu.send('fault', { name: 'deny', verb: 'set_limit', code: 3 });
    if (placeHere().hasSysAdmin === false) return;
    expect(await refuseImpossibleArms(arms.slice(0, 1), [device])).toEqual([
      expect.stringMatching(/^this board: .*no power limit to try with.*a lock itself was not tried/),
    ]);
  });

  test('the rights of a process refuse a lock where they are missing, and promise it nowhere', () => {
    expect(lockByRights({ hasSysAdmin: false })).toMatchObject({ may: 'no' });
    expect(lockByRights({ hasSysAdmin: true })).toMatchObject({
      may: 'likely',
      why: expect.stringMatching(/not tried/),
    });
    expect(lockByRights({ hasSysAdmin: null })).toMatchObject({
      may: 'likely',
      why: expect.stringMatching(/cannot be read/),
    });
  });

  test('of several boards the one that refuses is named', async () => {
    const second = await startTestGpu(1);
    try {
      const devices = [await open('simulated'), await openGpu({ kind: 'simulated', socketPath: second.socketPath })];
      await second.send('fault', { name: 'deny', verb: 'set_limit', code: 4 });
      await expect(refuseImpossibleArms(arms, devices)).rejects.toMatchObject({
        code: 'control_not_permitted',
        message: expect.stringMatching(/'lock70' locks the clock on board 1: .*'cap200' caps the power on board 1: /),
      });
      await devices[1]!.close();
    } finally {
      await second.stop();
    }
  });

  test('a lost board is an error, not an answer', async () => {
    const device = await open('simulated');
    await gpu.send('fault', { name: 'deny', verb: 'set_limit', code: 15 });
    await expect(probeControl(device)).rejects.toMatchObject({ code: 'nvml_gpu_is_lost' });
  });

  test('arms without levers ask nothing of the board', async () => {
    const device = await open('simulated');
    await gpu.send('fault', { name: 'deny', verb: 'set_limit', code: 4 });
    await expect(refuseImpossibleArms([{ ...arm, id: 'base' }], [device])).resolves.toEqual([]);
  });

  test('every refused level is named at once', async () => {
    const device = await open('simulated');
    const wrong = [
      { ...arm, lockSmClock: { mhz: 9000 } },
      { ...arm, id: 'cap20', powerCapW: 20 },
      { ...arm, id: 'cap400', powerCapW: 400 },
    ];
    await expect(refuseImpossibleArms(wrong, [device])).rejects.toMatchObject({
      code: 'control_level',
      message: expect.stringMatching(/'lock70'.*9000 MHz.*'cap20'.*20 W.*'cap400'.*400 W/),
    });
  });
});
