// Complaints about energy and levers that no test of a single room says: what is never asked for, set or started.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NVML_FUNCTIONS } from '../../src/gpu/nvml/library.ts';
import { cString, fieldRequest, STRUCT_BYTES } from '../../src/gpu/nvml/structs.ts';
import { assess, ruleOf } from '../analysis/support.ts';

const SRC = join(import.meta.dirname, '../../src');

test('power and energy are asked for the board alone, never for its module (G21)', () => {
  const request = fieldRequest([83, 185, 186]);
  const scopes = [0, 1, 2].map((field) => request.readUInt32LE(field * STRUCT_BYTES.nvmlFieldValue_t + 4));
  expect(scopes).toEqual([0, 0, 0]);
});

test('nothing but the limit and the lock of the SM clock can be set (G33, G37)', () => {
  const changing = NVML_FUNCTIONS.filter((name) => /Set(?!Create|Wait|Free)|Reset|Clear|Create(?!.*Event)/.test(name));
  expect(changing.filter((name) => !name.startsWith('nvmlEventSet')).toSorted()).toEqual([
    'nvmlDeviceResetGpuLockedClocks',
    'nvmlDeviceSetGpuLockedClocks',
    'nvmlDeviceSetPowerManagementLimit',
  ]);
});

test('a string ends at its first NUL, whatever lies behind (G43)', () => {
  expect(cString(Buffer.from('GPU-1\0garbage\0'))).toBe('GPU-1');
  expect(cString(Buffer.from('xxGPU-1'), 2)).toBe('GPU-1');
});

test('no measurement goes through the text of nvidia-smi (G50)', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  expect(files.length).toBeGreaterThan(200);
  expect(files.filter((name) => /(['"`])nvidia-smi\1/.test(readFileSync(join(SRC, name), 'utf8')))).toEqual([]);
});

test('a cap that binds far below the limit is laid to the machine, one at the limit is not (G53)', () => {
  const far = ruleOf(assess({ samples: () => ({ reasons: 4 }) }), 'V13');
  expect(far).toMatchObject({ status: 'hit', code: 'power_capped', act: 'W', evidence: { drawnW: 200, limitW: 350 } });
  expect(far.text).toContain('at 200 W of 350 W: the machine');
  const near = assess({ samples: (s) => ({ reasons: 4, powerAverageMw: 340_000, energyMj: s.energyMj * 1.7 }) });
  expect(ruleOf(near, 'V13').text).not.toContain('machine');
});
