// Loads of every kind in one launch, through the front door: played, captured, judged, and derived again from what is on disk.
import { describe, expect, test } from 'vitest';
import { openRun } from '../../src/capture/reader.ts';
import type { CellFile } from '../../src/core/index.ts';
import { experimentText } from './support/config.ts';
import { QUICK, scene, tokbench } from './support/harness.ts';

const TRACE = new URL('../fixtures/traces/azure-llm-2023-conv-excerpt.csv', import.meta.url).pathname;
const PHASES = 'warmupS: 1, windowS: 4, tailS: 1, drainS: 10';
const LENGTHS = 'promptTokens: 64, outputTokens: 8';
const LOADS = [
  `{ id: gamma, kind: gamma, rate: 8, burstiness: 0.5, ${LENGTHS}, ${PHASES} }`,
  `{ id: even, kind: constant, rate: 8, ${LENGTHS}, ${PHASES} }`,
  `{ id: steps, kind: phased, steps: [{ rate: 4, durationS: 2 }, { rate: 12, durationS: 2 }, { rate: 4, durationS: 2 }], ${LENGTHS}, ${PHASES} }`,
  `{ id: trace, kind: trace, trace: { path: ${TRACE}, lengths: false }, ${LENGTHS}, ${PHASES} }`,
  `{ id: b1, kind: closed, concurrency: 1, ${LENGTHS}, ${PHASES} }`,
  `{ id: b6, kind: closed, concurrency: 6, thinkS: 0.05, ${LENGTHS}, ${PHASES} }`,
];

function configText(): string {
  const lines = experimentText({ gpu: 'none' }).split('\n');
  const at = lines.indexOf('loads:');
  lines.splice(at + 1, 1, ...LOADS.map((load) => `  - ${load}`));
  return lines.join('\n').replace('gpu: { kind: none }', 'gpu: { kind: none }\nloadWorkers: 2');
}

describe('a launch with loads of every kind', () => {
  test('keeps their schedules, fills the slots of closed loops, and verifies', { timeout: 240_000 }, async () => {
    const at = scene(configText());
    const { code, stderr } = await tokbench(['run', at.config, '--out', at.dir, ...QUICK], at.env).ended;
    expect(code, stderr).toBe(0);
    const reader = await openRun(at.dir);
    const cells = new Map<string, CellFile>();
    for (const cell of await reader.cells()) cells.set(cell.key.load, cell);
    expect([...cells.keys()].sort()).toEqual(['b1', 'b6', 'even', 'gamma', 'steps', 'trace']);
    for (const cell of cells.values()) {
      const { metrics, key } = cell;
      expect(metrics.outcomes, key.load).toEqual({ ok: metrics.arrivals });
      const [schedule, requests] = [await reader.schedule(key), await reader.requests(key)];
      expect(requests.count).toBe(schedule.count);
      expect([...requests.scheduledNs]).toEqual([...schedule.scheduledNs].map((ns) => ns + cell.phases.startNs));
      expect(new Set(schedule.promptTokens)).toEqual(new Set([64]));
    }
    const even = await reader.schedule(cells.get('even')!.key);
    expect([...even.scheduledNs].slice(0, 3)).toEqual([125e6, 250e6, 375e6]);
    expect(cells.get('steps')!.metrics.recoveryS).toBeNull();
    expect(cells.get('b1')!.metrics.meanInFlight).toBeLessThanOrEqual(1);
    expect(cells.get('b6')!.metrics.pooledTpotMs).toBeGreaterThan(0);
    for (const [id, slots] of [
      ['b1', 1],
      ['b6', 6],
    ] as const) {
      const rule = cells.get(id)!.rules.find(({ rule }) => rule === 'V27')!;
      expect(['pass', 'hit']).toContain(rule.status);
      expect(rule.evidence['slots']).toBe(slots);
    }
    const verified = await tokbench(['verify', at.dir], at.env).ended;
    expect(verified.code, verified.stderr).toBe(0);
  });
});
