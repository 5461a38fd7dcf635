import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { probeHost } from '../../src/telemetry/host.ts';

const LIMITS = `Limit                     Soft Limit           Hard Limit           Units
Max processes             63000                63000                processes
Max open files            1024                 524288               files
`;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tokbench-host-'));
  mkdirSync(join(root, 'proc/self'), { recursive: true });
  mkdirSync(join(root, 'proc/1'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe('host probe', () => {
  test('says what this machine is', async () => {
    const facts = await probeHost();
    expect(facts.logicalCores).toBeGreaterThan(0);
    expect(facts.allottedCores).toBeLessThanOrEqual(facts.logicalCores);
    expect(facts.memoryBytes).toBeGreaterThan(facts.freeMemoryBytes);
  });

  test('reads both limits of open files', async () => {
    writeFileSync(join(root, 'proc/self/limits'), LIMITS);
    expect(await probeHost({ platform: 'linux', root, env: {} })).toMatchObject({
      openFilesSoft: 1024,
      openFilesHard: 524288,
    });
  });

  test('an unlimited or unreadable limit is null', async () => {
    writeFileSync(join(root, 'proc/self/limits'), LIMITS.replace('524288', 'unlimited'));
    expect(await probeHost({ platform: 'linux', root, env: {} })).toMatchObject({ openFilesHard: null });
    rmSync(join(root, 'proc'), { recursive: true });
    expect(await probeHost({ platform: 'linux', root, env: {} })).toMatchObject({ openFilesSoft: null });
  });

  test.each([
    ['docker', () => writeFileSync(join(root, '.dockerenv'), '')],
    ['kubepods', () => writeFileSync(join(root, 'proc/1/cgroup'), '0::/kubepods/besteffort/x\n')],
    [null, () => writeFileSync(join(root, 'proc/1/cgroup'), '0::/init.scope\n')],
  ])('container hint: %s', async (container, arrange) => {
    arrange();
    expect(await probeHost({ platform: 'linux', root, env: {} })).toMatchObject({ container });
  });

  test('what only Linux tells is named as missing elsewhere', async () => {
    const facts = await probeHost({ platform: 'darwin', root, env: {} });
    expect(facts).toMatchObject({ container: null, openFilesSoft: null });
    expect(Object.keys(facts.missing)).toEqual(['container', 'openFiles']);
    expect(facts.missing['openFiles']).toMatch(/darwin/);
  });
});
