// `tokbench load` as a person uses it: against servers that are already running, kind ones and others.
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { openRun } from '../../src/capture/reader.ts';
import type { CellFile } from '../../src/core/index.ts';
import { type Picky, type PickyServer, pickyServer } from '../support/picky-server.ts';
import { testAuthority } from '../support/tls/authority.ts';
import { wordLevel } from '../workloads/support/tokenizers.ts';
import { type Ended, QUICK, type Scene, scene, tokbench } from './support/harness.ts';

const LONG = 60_000;
const VLLM_PAGE = [
  'vllm:prefix_cache_hits_total{engine="0"} 0',
  'vllm:num_preemptions_total{engine="0"} 0',
  'vllm:num_requests_running{engine="0"} 0',
  'vllm:num_requests_waiting{engine="0"} 0',
  'process_start_time_seconds 1700000000.5',
  '',
].join('\n');

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function serverOf(picky: Picky = {}): Promise<PickyServer> {
  const server = await pickyServer({ models: ['m'], ...picky });
  open.push(() => server.close());
  return server;
}

const SHORT =
  '--model m --request-rate 20 --duration 2 --warmup 0.5 --tail 0.5 --random-input-len 16 --random-output-len 8';

function load(at: Scene, url: string, extra: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
  const flags = ['load', '--base-url', url, ...SHORT.split(' '), '--out', at.dir, ...extra];
  return tokbench(flags, { ...at.env, ...env }).ended;
}

/** Every byte of every file below a folder, Parquet as it lies. */
function everything(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, 'latin1'))
    .join('\n');
}

const cellOf = async (at: Scene): Promise<CellFile> => (await (await openRun(at.dir)).cells())[0]!;
/** A machine short of CPU may give V4 to V6, and V25 when it starves the test's own server; the exit code follows the verdict. */
async function measured(at: Scene, { code, stderr }: Ended): Promise<CellFile> {
  const cell = await cellOf(at);
  const excluded = cell.rules.filter(({ status, act }) => status === 'hit' && act !== 'W').map(({ rule }) => rule);
  expect(['V4', 'V5', 'V6', 'V25'], stderr).toEqual(expect.arrayContaining(excluded));
  expect(code, stderr).toBe(cell.valid ? 0 : 3);
  return cell;
}

const verified = async (at: Scene) => (await tokbench(['verify', at.dir], at.env).ended).code;

describe('a server that is already running', () => {
  test('is measured into a capture that verifies, can be reported, and can be run again', {
    timeout: LONG,
  }, async () => {
    const server = await serverOf({ metrics: VLLM_PAGE });
    const at = scene('');
    const csv = join(at.folder, 'requests.csv');
    const beforeNs = process.hrtime.bigint();
    const ended = await load(at, server.url, ['--json', '--requests-csv', csv, '--price', '2', '--report']);
    const cell = await measured(at, ended);
    const { stdout, stderr } = ended;
    expect(stderr).toMatch(/TTFT from schedule .*\d/);
    const told = JSON.parse(stdout) as { dir: string; cell: CellFile };
    expect(told.dir).toBe(at.dir);
    expect(told.cell).toEqual(cell);
    expect(cell.labels.filter((label) => label !== 'edge_imbalance')).toEqual(['short', 'small']);
    expect(cell).toMatchObject({ status: 'complete', synthetic: false, server: { pid: null, died: null } });
    expect(cell.rules.find(({ rule }) => rule === 'V19')).toMatchObject({ status: 'pass' });
    expect(await verified(at)).toBe(0);
    expect(readFileSync(join(at.dir, 'report/report.md'), 'utf8')).toMatch(/valid.*, short, small/i);

    const [head, ...rows] = readFileSync(csv, 'utf8').trimEnd().split('\n');
    expect(head).toBe('x_request_id,t_scheduled_ns,t_dispatch_ns,t_first_ns,t_last_ns,n_tokens,ok,gaps_ns');
    const sent = server.requests
      .filter(({ path }) => path.endsWith('/completions'))
      .map((r) => r.headers['x-request-id']);
    for (const row of rows) {
      const [id, scheduled, dispatched, first, last, tokens, ok, gaps] = row.split(',');
      expect(sent).toContain(id);
      const times = [
        beforeNs,
        BigInt(scheduled!),
        BigInt(dispatched!),
        BigInt(first!),
        BigInt(last!),
        process.hrtime.bigint(),
      ];
      expect(times.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(times);
      expect([tokens, ok]).toEqual(['8', '1']);
      const sum = gaps!.split(';').reduce((total, gap) => total + BigInt(gap), 0n);
      expect(gaps!.split(';')).toHaveLength(7);
      expect(sum).toBe(BigInt(last!) - BigInt(first!));
    }
    expect(rows.length).toBeGreaterThan(cell.metrics.arrivals);

    const again = { ...at, dir: join(at.folder, 'again') };
    const config = join(at.dir, 'config.yaml');
    const rerun = await tokbench(['run', config, '--out', again.dir, ...QUICK], at.env).ended;
    expect(rerun.code, rerun.stderr).toBe(0);
    const second = await cellOf(again);
    expect(second.scheduleSha256).toBe(cell.scheduleSha256);
    expect(second.promptsSha256).toBe(cell.promptsSha256);
  });

  test('without metrics says so beside every figure, and what the rules could not ask', { timeout: LONG }, async () => {
    const at = scene('');
    const ended = await load(at, (await serverOf()).url, ['--report']);
    const cell = await measured(at, ended);
    const { stderr } = ended;
    expect(cell.labels).toContain('no_server_metrics');
    for (const rule of ['V17', 'V18', 'V19']) {
      expect(cell.rules.find((outcome) => outcome.rule === rule)).toMatchObject({ status: 'not_evaluated' });
    }
    expect(stderr).toMatch(/valid +labels: .*no_server_metrics/i);
    expect(stderr).toContain('Advice: open its /metrics');
    expect(readFileSync(join(at.dir, 'report/report.md'), 'utf8')).toContain('no\\_server\\_metrics');
    expect(await verified(at)).toBe(0);
  });

  test('behind a gateway: https, base path, key and headers, and none of the secrets anywhere', {
    timeout: LONG,
  }, async () => {
    const authority = testAuthority();
    const key = 'the-gateway-key-nobody-may-see';
    const literal = 'literal-header-secret-value';
    const quoted: string[] = [];
    const server = await serverOf({
      tls: { key: authority.key, cert: authority.cert },
      base: '/team/base',
      authorization: `Bearer ${key}`,
      // Every fifth request fails and quotes what it was sent.
      instead: (response, nth, request) => {
        if (nth % 5 !== 0) return false;
        quoted.push(String(request.headers['x-api-key']));
        const message = `bad key ${request.headers.authorization} or ${request.headers['x-api-key']}`;
        response.writeHead(500, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message } }));
        return true;
      },
    });
    const at = scene('');
    const csv = join(at.folder, 'requests.csv');
    const flags = ['--ca-file', authority.caFile, '--api-key-env', 'GATEWAY_KEY', '--header', `X-Api-Key: ${literal}`];
    const ended = await load(at, `${server.url}/v1`, [...flags, '--requests-csv', csv, '--json'], { GATEWAY_KEY: key });
    await measured(at, ended);
    expect(quoted).toContain(literal);
    const written = `${everything(at.dir)}${readFileSync(csv, 'utf8')}${ended.stdout}${ended.stderr}`;
    expect(written).not.toContain(key);
    expect(written).not.toContain(literal);
    const requests = await (await openRun(at.dir)).requests((await cellOf(at)).key);
    expect(requests.errorText.filter((text) => text !== null).length).toBeGreaterThan(0);
    for (const text of requests.errorText) if (text !== null) expect(text).toMatch(/bad key .*redacted/);
    const config = parse(readFileSync(join(at.dir, 'config.yaml'), 'utf8')) as { engine: Record<string, unknown> };
    expect(config.engine).toMatchObject({
      baseUrl: `${server.url}/v1`,
      apiKeyEnv: 'GATEWAY_KEY',
      headers: { 'X-Api-Key': '\u0024{HEADER_X_API_KEY}' },
    });
    expect(await verified(at)).toBe(0);
  });

  test('unverified TLS is written into the capture', { timeout: LONG }, async () => {
    const { key, cert } = testAuthority('DNS:elsewhere.example');
    const server = await serverOf({ tls: { key, cert } });
    const at = scene('');
    const refused = await load(at, server.url);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('certificate_refused');
    await measured(at, await load(at, server.url, ['--insecure']));
    const [launch] = await (await openRun(at.dir)).launches();
    expect(launch?.effective['certificate']).toContain('NOT VERIFIED');
  });
});

describe('prompts as text', () => {
  const tokenizerIn = (at: Scene) => ['--tokenizer', wordLevel(join(at.folder, 'tokenizer')), '--token-ids', '4,1024'];

  test('of counted length where the server takes no ids', { timeout: LONG }, async () => {
    const server = await serverOf({ takesIds: false });
    const at = scene('');
    const cell = await measured(at, await load(at, server.url, tokenizerIn(at)));
    const requests = await (await openRun(at.dir)).requests(cell.key);
    expect(new Set(requests.promptTokensSent)).toEqual(new Set([16]));
    expect(cell.rules.find(({ rule }) => rule === 'V1')).toMatchObject({ status: 'pass' });
    expect(typeof server.requests.at(-1)?.body['prompt']).toBe('string');
    expect(await verified(at)).toBe(0);
  });

  test('in a chat, whose template adds tokens of its own', { timeout: LONG }, async () => {
    const server = await serverOf();
    const at = scene('');
    const cell = await measured(at, await load(at, server.url, ['--chat', ...tokenizerIn(at)]));
    expect(server.requests.at(-1)).toMatchObject({
      path: '/v1/chat/completions',
      body: { messages: [{ role: 'user' }] },
    });
    const requests = await (await openRun(at.dir)).requests(cell.key);
    expect(new Set(requests.promptTokensSent)).toEqual(new Set([16]));
    expect(new Set(requests.promptTokensReported)).toEqual(new Set([19]));
    expect(cell.rules.find(({ rule }) => rule === 'V1')?.text).toContain('3');
    expect(await verified(at)).toBe(0);
  });
});

describe('the exit code', () => {
  test('3 when the figures are not valid, with the rule', { timeout: LONG }, async () => {
    const at = scene('');
    const { code, stderr } = await load(at, (await serverOf({ extraPromptTokens: 1 })).url);
    expect(code, stderr).toBe(3);
    expect(stderr).toMatch(/NOT VALID[\s\S]*excluded V1 prompt_length_mismatch/);
  });

  test("1 when every request fails, with the server's words", { timeout: LONG }, async () => {
    const server = await serverOf({
      instead: (response, nth) => {
        if (nth <= 2) return false;
        response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"quota used up"}}');
        return true;
      },
    });
    const at = scene('');
    const { code, stderr } = await load(at, server.url);
    expect(code, stderr).toBe(1);
    expect(stderr).toContain('every request failed: http_error HTTP 400');
    expect(stderr).toContain('quota used up');
    expect(await verified(at)).toBe(0);
  });

  test('1 when the server refuses everything: a long load is given up at once', { timeout: LONG }, async () => {
    const server = await serverOf({
      instead: (response, nth) => {
        if (nth > 2) response.writeHead(400).end('quota used up');
        return nth > 2;
      },
    });
    const at = scene('');
    const { code, stderr } = await load(at, server.url, ['--duration', '3000']);
    expect(code, stderr).toBe(1);
    expect(stderr).toMatch(/failed: the server refused every request so far as wrong: HTTP 400: quota used up/);
    expect(await cellOf(at)).toMatchObject({ status: 'failed', valid: false });
    expect(await verified(at)).toBe(0);
  });

  test('1 when the first request is refused: nothing is written', { timeout: LONG }, async () => {
    const server = await serverOf({
      instead: (response) => {
        response.writeHead(400).end('max_tokens cannot be greater than max_model_len');
        return true;
      },
    });
    const at = scene('');
    const { code, stderr } = await load(at, server.url);
    expect(code).toBe(1);
    expect(stderr).toContain('max_tokens cannot be greater than max_model_len');
    expect(readdirSync(at.folder)).not.toContain('run');
  });

  test.each([
    [['--base-url', 'ftp://x', '--model', 'm', '--request-rate', '1'], 'http:// or https://'],
    [['--base-url', 'http://u:p@x', '--model', 'm', '--request-rate', '1'], 'password'],
    [['--base-url', 'http://x', '--model', 'm'], '--request-rate'],
    [['--base-url', 'http://x', '--model', 'm', '--request-rate', '1', '--goodput', 'e2el:5'], 'ttft:MS'],
    [['--base-url', 'http://x', '--model', 'm', '--request-rate', '1', '--extra-body', '[1]'], 'JSON object'],
    [
      ['--base-url', 'http://x', '--model', 'm', '--request-rate', '1', '--header', 'secret-without-name'],
      'Name: value',
    ],
    [['--base-url', 'http://x', '--model', 'm', '--request-rate', '1', '--api-key-env', 'NOT_SET_ANYWHERE'], 'export'],
  ])('2 for %j', { timeout: LONG }, async (flags, said) => {
    const at = scene('');
    const { code, stderr } = await tokbench(['load', ...flags], at.env).ended;
    expect(code, stderr).toBe(2);
    expect(stderr).toContain(said);
    expect(stderr).not.toMatch(/secret-without|u:p/);
  });

  test('130 after Ctrl-C: what was measured until then verifies', { timeout: LONG }, async () => {
    const at = scene('');
    const flags = [...SHORT.split(' '), '--out', at.dir].map((flag) => (flag === '2' ? '60' : flag));
    const started = tokbench(['load', '--base-url', (await serverOf()).url, ...flags], at.env);
    await started.says('load r20');
    started.child.kill('SIGINT');
    expect((await started.ended).code).toBe(130);
    expect(await verified(at)).toBe(0);
  });
});

test('a journal that a killed run left behind does not stand in the way of a load without energy', {
  timeout: LONG,
}, async () => {
  const at = scene('');
  const state = join(at.folder, 'state');
  mkdirSync(state, { recursive: true });
  writeFileSync(join(state, 'guard-broken.json'), '{');
  const server = await serverOf();
  await measured(at, await load(at, server.url));
});
