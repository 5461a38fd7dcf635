// Every return code of NVML from every function that is called, and every function missing: each ends as documented.

import koffi from 'koffi';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isBenchError } from '../../src/core/index.ts';
import type { GpuDevice } from '../../src/gpu/device.ts';
import { NVML_CODES, nvmlError, nvmlName, nvmlPolicy } from '../../src/gpu/nvml/codes.ts';
import { openNvmlGpu } from '../../src/gpu/nvml/device.ts';
import { NVML_FUNCTIONS, type NvmlFunction } from '../../src/gpu/nvml/library.ts';
import { type Place, type PlaceTraces, placeOf } from '../../src/gpu/nvml/place.ts';
import { probeNvml } from '../../src/gpu/nvml/probe.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';

const stub = buildNvmlStub();
const UUID = 'GPU-51570000-5157-4157-8157-515700000001';
const FAILURES = NVML_CODES.filter((code) => code !== 0);
const FOREVER = -1;

/** What a caller sees of one attempt: a value, or the code of the typed error. */
type Seen = unknown;
type Attempt = (library: string) => Promise<Seen>;

async function withDevice(library: string, use: (device: GpuDevice) => Promise<unknown>): Promise<Seen> {
  const device = await openNvmlGpu(UUID, library);
  try {
    return await use(device);
  } finally {
    await device.close();
  }
}

const failing = async (attempt: Attempt, library: string): Promise<Seen> =>
  attempt(library).catch((error: unknown) => {
    if (!isBenchError(error)) throw error;
    expect(error.advice).not.toBe('');
    return error.code;
  });

const opens: Attempt = (library) => withDevice(library, async () => 'open');
const opensTheOnlyOne: Attempt = async (library) => {
  await (await openNvmlGpu(null, library)).close();
  return 'open';
};
const identity =
  (field: 'name' | 'driver' | 'pciBusId' | 'memoryBytes' | 'cudaIndex'): Attempt =>
  (library) =>
    withDevice(library, async (device) => (field === 'cudaIndex' ? device.cudaIndex : device.identity[field]));
const limit =
  (field: 'defaultLimitW' | 'minLimitW' | 'maxSmClockMhz'): Attempt =>
  (library) =>
    withDevice(library, async (device) => device.limits[field]);
const clocks: Attempt = (library) => withDevice(library, async (device) => device.limits.supportedSmClocksMhz.length);
/** The columns that are empty after a full reading, and what was counted as failed. */
const reading: Attempt = (library) =>
  withDevice(library, async (device) => {
    // Which of several boards it is, only their reader knows.
    const { board: _, ...sample } = await device.read(0n);
    const empty = Object.entries(sample).filter(([, value]) => Number.isNaN(value));
    return { empty: empty.map(([name]) => name), errors: [...device.readErrors.keys()] };
  });
const probed =
  (...names: readonly string[]): Attempt =>
  async (library) => {
    const [board] = probeNvml({ libraryPath: library, askPermission: false }).boards;
    return names.map((name) => board!.answers.find((each) => each.name === name)?.code);
  };
const processes: Attempt = (library) => withDevice(library, async (device) => (await device.processes()).length);
const watch: Attempt = (library) =>
  withDevice(library, async (device) => {
    const events = await device.faultEvents();
    const drained = await events.drain();
    await events.close();
    return drained.length;
  });
const ecc: Attempt = (library) => withDevice(library, (device) => device.uncorrectedEccErrors());

const error = (code: number) => `nvml_${nvmlName(code).toLowerCase()}`;
const isAbsent = (code: number) => nvmlPolicy(code) === 'absent';
const isLost = (code: number) => nvmlPolicy(code) === 'lost';

/** The typed error, whatever the code. */
const fails = (code: number): Seen => error(code);
/** A fact that may be missing: `without` stands in its place, unless the board is gone. */
const without =
  (value: Seen) =>
  (code: number): Seen =>
    isLost(code) ? error(code) : value;
/** A sampled field that stays empty and is counted; no code stops a reading. */
const empty =
  (name: string, ...columns: readonly string[]) =>
  (code: number): Seen => ({ empty: columns, errors: [`${name}: ${nvmlName(code)}`] });
const unchanged = (value: Seen) => (): Seen => value;

interface Documented {
  readonly attempt: Attempt;
  readonly ends: (code: number) => Seen;
  /** Where a missing function ends otherwise than code 13, FUNCTION_NOT_FOUND. */
  readonly missing?: Seen;
}

const sampled = (name: NvmlFunction, ...columns: readonly string[]): Documented => ({
  attempt: reading,
  ends: empty(name, ...columns),
});
const inProbe = (...names: readonly string[]): Documented => ({
  attempt: probed(...names),
  ends: (code) => (isLost(code) ? names.map(() => undefined) : names.map(() => nvmlName(code))),
});
const setter = (change: (device: GpuDevice) => Promise<unknown>): Documented => ({
  attempt: (library) => withDevice(library, change),
  ends: fails,
});
const checksSharing: Documented = { attempt: opens, ends: (code) => (isAbsent(code) ? 'open' : error(code)) };
const VITAL = 'nvml_symbol_missing';
const FINE = { empty: [], errors: [] };

const DOCUMENTED: Readonly<Record<NvmlFunction, Documented>> = {
  nvmlInit_v2: { attempt: opens, ends: fails, missing: VITAL },
  nvmlShutdown: { attempt: opens, ends: unchanged('open'), missing: VITAL },
  nvmlDeviceGetHandleByUUID: { attempt: opens, ends: fails, missing: VITAL },
  nvmlDeviceGetUUID: { attempt: opens, ends: fails },
  nvmlDeviceGetCount_v2: { attempt: opensTheOnlyOne, ends: fails },
  nvmlDeviceGetHandleByIndex_v2: {
    attempt: opensTheOnlyOne,
    ends: (code) => (nvmlPolicy(code) === 'permission' ? 'gpu_not_found' : error(code)),
  },
  nvmlDeviceIsMigDeviceHandle: checksSharing,
  nvmlDeviceGetMigMode: checksSharing,
  nvmlDeviceGetVirtualizationMode: checksSharing,
  nvmlDeviceGetName: { attempt: identity('name'), ends: without('') },
  nvmlSystemGetDriverVersion: { attempt: identity('driver'), ends: without('') },
  nvmlDeviceGetPciInfo_v3: { attempt: identity('cudaIndex'), ends: without(null) },
  nvmlDeviceGetMemoryInfo_v2: { attempt: identity('memoryBytes'), ends: without(Number.NaN) },
  // Asked only when the newer one fails.
  nvmlDeviceGetMemoryInfo: { attempt: identity('memoryBytes'), ends: unchanged(48 * 2 ** 30) },
  nvmlDeviceGetPowerManagementDefaultLimit: { attempt: limit('defaultLimitW'), ends: without(Number.NaN) },
  nvmlDeviceGetPowerManagementLimitConstraints: { attempt: limit('minLimitW'), ends: without(Number.NaN) },
  nvmlDeviceGetMaxClockInfo: { attempt: limit('maxSmClockMhz'), ends: without(Number.NaN) },
  nvmlDeviceGetSupportedMemoryClocks: { attempt: clocks, ends: without(0) },
  nvmlDeviceGetSupportedGraphicsClocks: { attempt: clocks, ends: without(0) },
  nvmlDeviceGetArchitecture: { attempt: opens, ends: without('open') },
  nvmlDeviceGetCudaComputeCapability: inProbe('compute capability'),

  nvmlDeviceGetTotalEnergyConsumption: sampled('nvmlDeviceGetTotalEnergyConsumption', 'energyMj'),
  nvmlDeviceGetFieldValues: {
    attempt: reading,
    ends: (code) => ({
      empty: [...(isAbsent(code) ? ['powerInstantMw'] : ['powerInstantMw', 'powerAverageMw']), 'powerViolationNs'],
      errors: [`nvmlDeviceGetFieldValues: ${nvmlName(code)}`],
    }),
  },
  // Asked only where the two power fields are absent.
  nvmlDeviceGetPowerUsage: { attempt: reading, ends: unchanged(FINE) },
  nvmlDeviceGetClockInfo: {
    attempt: reading,
    ends: empty('nvmlDeviceGetClockInfo', 'smClockMhz', 'memClockMhz'),
  },
  nvmlDeviceGetTemperature: sampled('nvmlDeviceGetTemperature', 'temperatureC'),
  nvmlDeviceGetEnforcedPowerLimit: sampled('nvmlDeviceGetEnforcedPowerLimit', 'enforcedLimitMw'),
  nvmlDeviceGetUtilizationRates: sampled('nvmlDeviceGetUtilizationRates', 'utilizationPct'),
  nvmlDeviceGetCurrentClocksEventReasons: {
    attempt: reading,
    // The older name is asked next; this library has only the newer one.
    ends: (code) => {
      const named = isAbsent(code)
        ? 'nvmlDeviceGetCurrentClocksThrottleReasons'
        : 'nvmlDeviceGetCurrentClocksEventReasons';
      return empty(named, 'reasons')(isAbsent(code) ? 13 : code);
    },
  },
  nvmlDeviceGetCurrentClocksThrottleReasons: { attempt: reading, ends: unchanged(FINE) },

  nvmlDeviceGetPowerManagementLimit: {
    attempt: (library) => withDevice(library, async (device) => (await device.controls()).powerLimitW),
    ends: unchanged(null),
  },
  nvmlDeviceSetPowerManagementLimit: setter((device) => device.setPowerLimitW(300)),
  nvmlDeviceSetGpuLockedClocks: setter((device) => device.lockSmClock(1500)),
  nvmlDeviceResetGpuLockedClocks: setter((device) => device.resetSmClock()),

  nvmlDeviceGetComputeRunningProcesses_v3: {
    attempt: processes,
    // Code 7 for ever is a list that never fits. The older function is asked next; this library has only the newer.
    ends: fails,
  },
  nvmlDeviceGetComputeRunningProcesses_v2: { attempt: processes, ends: unchanged(0) },
  nvmlDeviceGetMPSComputeRunningProcesses_v3: {
    attempt: processes,
    ends: (code) => (isAbsent(code) ? 0 : error(code)),
  },
  nvmlDeviceGetTotalEccErrors: { attempt: ecc, ends: fails },
  nvmlEventSetCreate: { attempt: watch, ends: fails },
  nvmlDeviceGetSupportedEventTypes: { attempt: watch, ends: fails },
  nvmlDeviceRegisterEvents: { attempt: watch, ends: fails },
  // Code 10, TIMEOUT, says that nothing happened.
  nvmlEventSetWait_v2: { attempt: watch, ends: (code) => (code === 10 ? 0 : error(code)) },
  nvmlEventSetFree: { attempt: watch, ends: unchanged(0) },

  nvmlSystemGetNVMLVersion: {
    attempt: async (library) => probeNvml({ libraryPath: library, askPermission: false }).nvml,
    ends: without(null),
  },
  nvmlSystemGetCudaDriverVersion_v2: {
    attempt: async (library) => probeNvml({ libraryPath: library, askPermission: false }).cuda,
    ends: without(null),
    missing: '12.4',
  },
  nvmlSystemGetCudaDriverVersion: {
    attempt: async (library) => probeNvml({ libraryPath: library, askPermission: false }).cuda,
    ends: unchanged('12.4'),
  },
  nvmlDeviceGetVbiosVersion: {
    attempt: probed('VBIOS'),
    ends: (code) => [isLost(code) ? undefined : 'NOT_SUPPORTED'],
  },
  nvmlDeviceGetMemoryBusWidth: inProbe('memory bus width'),
  nvmlDeviceGetEccMode: inProbe('ECC mode'),
  nvmlDeviceGetPersistenceMode: inProbe('persistence mode'),
  nvmlDeviceGetComputeMode: inProbe('compute mode'),
  nvmlDeviceGetCurrPcieLinkGeneration: inProbe('PCIe generation now'),
  nvmlDeviceGetCurrPcieLinkWidth: inProbe('PCIe lanes now'),
  nvmlDeviceGetMaxPcieLinkGeneration: inProbe('PCIe generation at most'),
  nvmlDeviceGetMaxPcieLinkWidth: inProbe('PCIe lanes at most'),
  nvmlDeviceGetTemperatureThreshold: inProbe('slowdown from', 'shutdown from'),
  nvmlDeviceGetPerformanceState: inProbe('performance state'),
  nvmlDeviceGetAPIRestriction: inProbe('application clocks'),
  nvmlDeviceGetMaxCustomerBoostClock: inProbe('highest customer boost clock'),
  nvmlDeviceGetClock: inProbe('default application SM clock'),
  nvmlDeviceGetApplicationsClock: { attempt: probed('application SM clock'), ends: unchanged(['SUCCESS']) },
  nvmlDeviceGetSupportedClocksEventReasons: {
    attempt: probed('clock event reasons that the board knows'),
    ends: (code) => [nvmlName(code)],
  },
  nvmlDeviceGetSupportedClocksThrottleReasons: {
    attempt: probed('clock event reasons that the board knows'),
    ends: unchanged(['SUCCESS']),
  },
};

let gpu: TestGpu;
let force: (name: string | null, code: number, times: number) => void;

describe.skipIf(stub.path === null)('every function of NVML', () => {
  const library = stub.path!;

  beforeAll(async () => {
    gpu = await startTestGpu();
    process.env['TOKBENCH_SIM_GPU_SOCKET'] = gpu.socketPath;
    force = koffi.load(library).func('tokbench_nvml_stub_force', 'void', ['str', 'int', 'int']) as typeof force;
  });

  afterEach(() => force(null, 0, 0));

  afterAll(async () => {
    delete process.env['TOKBENCH_SIM_GPU_SOCKET'];
    await gpu.stop();
  });

  test('has its end written down', () => {
    expect(Object.keys(DOCUMENTED).toSorted()).toEqual([...NVML_FUNCTIONS].toSorted());
  });

  test.each(NVML_FUNCTIONS)('%s: every return code', async (name) => {
    const { attempt, ends } = DOCUMENTED[name];
    // Asking for the size of a list answers 7 by right.
    const codes =
      name.startsWith('nvmlDeviceGetSupportedMem') || name.startsWith('nvmlDeviceGetSupportedGraphics')
        ? FAILURES.filter((code) => code !== 7)
        : FAILURES;
    const seen = new Map<string, Seen>();
    for (const code of codes) {
      force(name, code, FOREVER);
      seen.set(nvmlName(code), await failing(attempt, library));
      force(null, 0, 0);
    }
    expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(codes.map((code) => [nvmlName(code), ends(code)])));
  });

  test.each(NVML_FUNCTIONS)('%s: missing', async (name) => {
    const { attempt, ends, missing = ends(13) } = DOCUMENTED[name];
    const lacking = buildNvmlStub('current', name);
    expect(await failing(attempt, lacking.path!)).toEqual(missing);
  });

  test.each(['nvmlInit_v2', 'nvmlDeviceGetHandleByUUID', 'nvmlDeviceGetUUID', 'nvmlDeviceGetMigMode'] as const)(
    '%s is tried once more after a code that may pass',
    async (name) => {
      for (const code of FAILURES) {
        force(name, code, 1);
        const outcome = await failing(opens, library);
        const forgiven = nvmlPolicy(code) === 'transient' || (name === 'nvmlDeviceGetMigMode' && isAbsent(code));
        expect([nvmlName(code), outcome]).toEqual([nvmlName(code), forgiven ? 'open' : error(code)]);
        force(null, 0, 0);
      }
    },
  );

  test('the machine is at fault, exit 4, for exactly the codes that say so', () => {
    const four = FAILURES.filter((code) => nvmlError(code, 'call').exitCode === 4).map(nvmlName);
    expect(four).toEqual(['DRIVER_NOT_LOADED', 'LIBRARY_NOT_FOUND', 'LIB_RM_VERSION_MISMATCH']);
  });
});

const traces = (given: Partial<PlaceTraces>): PlaceTraces => ({
  containerMarker: false,
  cgroup: '0::/init.scope',
  kernelVersion: 'Linux version 6.8.0-45-generic',
  status: 'CapEff:\t0000000000000000\n',
  pidNamespace: 'pid:[4026531836]',
  uid: 1000,
  env: {},
  ...given,
});
const HOST = placeOf(traces({}));
const CONTAINER = placeOf(traces({ containerMarker: true, pidNamespace: 'pid:[4026532000]' }));
const GVISOR = placeOf(
  traces({ kernelVersion: 'Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016', containerMarker: true }),
);

describe('where a process runs', () => {
  test.each([
    [traces({}), { kind: 'host', isRoot: false, hasSysAdmin: false, ownPidsAreTheHosts: true }],
    [traces({ uid: 0, status: 'CapEff:\t000001ffffffffff\n' }), { kind: 'host', isRoot: true, hasSysAdmin: true }],
    [
      traces({ containerMarker: true, pidNamespace: 'pid:[4026532711]', status: 'CapEff:\t00000000a80425fb\n' }),
      { kind: 'container', hasSysAdmin: false, ownPidsAreTheHosts: false },
    ],
    [traces({ cgroup: '12:devices:/kubepods/burstable/pod1' }), { kind: 'container' }],
    [traces({ env: { KUBERNETES_SERVICE_HOST: '10.0.0.1' } }), { kind: 'container' }],
    [traces({ kernelVersion: 'Linux version 5.15.90.1-microsoft-standard-WSL2' }), { kind: 'wsl' }],
    [
      traces({ kernelVersion: null, cgroup: null, status: null, pidNamespace: null, uid: null }),
      { hasSysAdmin: null, ownPidsAreTheHosts: null },
    ],
  ])('is told from its traces (%#)', (given, expected) => {
    expect(placeOf(given)).toMatchObject(expected);
  });

  test('gVisor is told from the kernel that it pretends to have', () => {
    expect(GVISOR.kind).toBe('gvisor');
  });
});

describe('advice fits the place', () => {
  test.each<[string, number, Place, RegExp]>([
    ['no permission in a container', 4, CONTAINER, /--cap-add SYS_ADMIN/],
    ['no permission on a host', 4, HOST, /Run as root/],
    ['no permission under gVisor', 4, GVISOR, /outside the sandbox/],
    ['blocked under gVisor', 17, GVISOR, /gVisor blocks.*latency alone/],
    ['blocked by a cgroup', 17, CONTAINER, /cgroup/],
    ['not supported under gVisor', 3, GVISOR, /gVisor.*latency alone/],
    ['not supported on a host', 3, HOST, /leave out what needs it/],
    ['driver and library differ in a container', 18, CONTAINER, /upgraded under the container/],
    ['driver and library differ on a host', 18, HOST, /reload the driver module or reboot/],
    ['no driver in a container', 9, CONTAINER, /--gpus all/],
    ['no driver on a host', 9, HOST, /modprobe nvidia/],
    ['library pieces missing in a container', 12, CONTAINER, /utility/],
    ['unknown in a container', 999, CONTAINER, /daemon-reload/],
    ['unknown on a host', 999, HOST, /NVRM/],
    ['lost', 15, HOST, /reboot the machine/],
    ['reset required', 16, HOST, /never resets/],
    ['no such board in a container', 28, CONTAINER, /start the container with that GPU/],
  ])('%s', (_name, code, place, advice) => {
    expect(nvmlError(code, 'call', '', place).advice).toMatch(advice);
  });

  test('no code is without advice, anywhere', () => {
    const places = [HOST, CONTAINER, GVISOR];
    expect(
      FAILURES.filter((code) => places.some((place) => nvmlError(code, 'c', '', place).advice.length < 20)),
    ).toEqual([]);
  });
});
