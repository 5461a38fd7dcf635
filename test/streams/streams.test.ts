// The runner of the stream cases can fail: a runner that always passes proves nothing. (The cases themselves run alone,
// before the unit tests: they are timed.)
import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');
const CASE = join(ROOT, 'test/fixtures/streams/b01-completions-close-delimited.json');

function play(folder: string): Promise<{ code: number; output: string }> {
  return new Promise((done) => {
    const env = { ...process.env, TOKBENCH_STREAM_CASES: folder };
    execFile(process.execPath, [join(ROOT, 'test/streams.run.ts')], { env }, (error, stdout, stderr) => {
      done({ code: typeof error?.code === 'number' ? error.code : 0, output: stdout + stderr });
    });
  });
}

const scratch = () => mkdtempSync(join(tmpdir(), 'tokbench-cases-'));

function variant(change: (value: Record<string, Record<string, unknown>>) => void): string {
  const folder = scratch();
  const value = JSON.parse(readFileSync(CASE, 'utf8'));
  change(value);
  writeFileSync(join(folder, 'case.json'), JSON.stringify(value));
  return folder;
}

test('a right case passes, and only the named folder is played', async () => {
  const folder = scratch();
  copyFileSync(CASE, join(folder, 'one.json'));
  expect(await play(folder)).toMatchObject({ code: 0, output: '1 passed, 0 failed\n' });
});

test.each([
  ['outcome', 'truncated'],
  ['outputTokens', 4],
  ['tokensFrom', 'events'],
  ['contentEvents', 0],
  ['finishReason', 'stop'],
  ['firstTokenMs', null],
  ['flags', ['fat_first_event']],
  ['errorMentions', 'overloaded'],
  ['noSuchField', 1],
])('a wrong expectation of %s fails with the file and the field', async (field, value) => {
  const { code, output } = await play(
    variant(({ expect: expected }) => {
      expected![field] = value;
    }),
  );
  expect(code).toBe(1);
  expect(output).toMatch(new RegExp(`^FAIL .*case\\.json ${field}: got `, 'm'));
  expect(output).toMatch(/^0 passed, 1 failed$/m);
});

test('a file that is no case is one failure', async () => {
  const folder = scratch();
  writeFileSync(join(folder, 'broken.json'), '{"name": ');
  const { code, output } = await play(folder);
  expect(code).toBe(1);
  expect(output).toMatch(/FAIL .*broken\.json/);
});

test('an empty or missing folder is wrong use', async () => {
  expect((await play(scratch())).code).toBe(2);
  expect((await play('/no/such/folder')).code).toBe(2);
});
