import { availableParallelism } from 'node:os';
import { expect, test } from 'vitest';
import type { WorkerEvidence } from '../../src/core/index.ts';
import { type CpuReading, clientEvidence, parseProcStat } from '../../src/loadgen/saturation.ts';

const WORKER: WorkerEvidence = {
  worker: 0,
  loopDelayP99Ms: 1,
  loopDelayMaxMs: 2,
  loopUtilization: 0.2,
  gcPauseMaxMs: 3,
  gcPauseTotalMs: 4,
};
const CORES = availableParallelism();
const opened: CpuReading = { atNs: 0, processUs: 0, host: { busy: 0, total: 0 } };
const closed: CpuReading = { atNs: 10e9, processUs: 4e6 * CORES, host: { busy: 300, total: 1000 } };
const sockets = { socketsOpenedBefore: 1, socketsOpenedLate: 0 };

test('what the pacers spent in waiting is no CPU use of the client', () => {
  const share = (waitedNs: number) =>
    clientEvidence({ workers: [WORKER], opened, closed, waitedNs, ...sockets }).processCpuShare;
  expect(share(0)).toBeCloseTo(0.4, 12);
  expect(share(1e9 * CORES)).toBeCloseTo(0.3, 12);
  expect(share(100e9 * CORES)).toBe(0);
});

test('pauses for garbage collection are kept as the worker saw them', () => {
  const { workers, missing } = clientEvidence({ workers: [WORKER], opened, closed, waitedNs: 0, ...sockets });
  expect(workers).toEqual([WORKER]);
  expect(missing).toEqual({});
});

test('a worker without evidence is missed by name, the others are kept', () => {
  const evidence = clientEvidence({ workers: [null, WORKER, null], opened, closed, waitedNs: 0, ...sockets });
  expect(evidence.workers).toEqual([WORKER]);
  expect(evidence.missing).toEqual({ workers: 'no evidence of load worker 0, 2' });
});

test('a load that ended before its window has no CPU figures, and says why', () => {
  const evidence = clientEvidence({ workers: [], opened, closed: null, waitedNs: 0, ...sockets });
  expect(evidence).toMatchObject({ processCpuShare: null, hostCpuShare: null });
  expect(Object.keys(evidence.missing).sort()).toEqual(['hostCpuShare', 'processCpuShare']);
});

test('host time: waiting for a disk is idle, stolen time is busy', () => {
  expect(parseProcStat('cpu  10 0 20 60 5 1 1 3 0 0\ncpu0 1')).toEqual({ busy: 35, total: 100 });
  expect(parseProcStat('nonsense')).toBeNull();
  expect(parseProcStat(null)).toBeNull();
});
