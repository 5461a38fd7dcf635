// What is found out about a server that is already running, and what is said when it cannot be used.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type OpenAiEngineSpec, PLAIN_LOAD, systemClock } from '../../src/core/index.ts';
import { watchAttached } from '../../src/engines/attached-health.ts';
import type { RunningEngine } from '../../src/engines/engine.ts';
import { attachEngine } from '../../src/engines/openai.ts';
import { Probe } from '../../src/engines/probe.ts';
import { type Picky, type PickyServer, pickyServer } from '../support/picky-server.ts';
import { scratchFolder } from '../support/sim/processes.ts';
import { testAuthority } from '../support/tls/authority.ts';
import { experimentWith } from './support/experiment.ts';

const SPEC: OpenAiEngineSpec = {
  kind: 'openai',
  baseUrl: '',
  apiKeyEnv: null,
  apiKeyFile: null,
  headers: {},
  caFile: null,
  insecure: false,
  tokenizer: null,
  extraBody: {},
  maxSeqs: 256,
  readinessTimeoutS: 5,
};
const PHASES = { warmupS: 0, windowS: 1, tailS: 0, drainS: 1 };
const LOAD = { ...PLAIN_LOAD, id: 'load', rate: 1, promptTokens: 64, outputTokens: 64, ...PHASES };

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function serverOf(picky: Picky): Promise<PickyServer> {
  const server = await pickyServer(picky);
  open.push(() => server.close());
  return server;
}

async function attach(baseUrl: string, over: Partial<OpenAiEngineSpec> = {}, text: string | null = null) {
  const base = experimentWith({}, { servedName: 'm' });
  const engine = await attachEngine({
    experiment: { ...base, loads: [LOAD] },
    engine: { ...SPEC, baseUrl, ...over },
    originNs: process.hrtime.bigint(),
    canaryPrompt: Array.from({ length: 16 }, (_, index) => 300 + index),
    canaryText: text,
    longestPrompt: Array.from({ length: 64 }, (_, index) => 300 + index),
    signal: new AbortController().signal,
    clock: systemClock,
  });
  open.push(() => engine.stop());
  return engine;
}

async function found(picky: Picky, over: Partial<OpenAiEngineSpec> = {}, text: string | null = null) {
  const server = await serverOf(picky);
  return { server, engine: await attach(server.url, over, text) };
}

const failure = (picky: Picky, over: Partial<OpenAiEngineSpec> = {}) =>
  found(picky, over).then(
    () => 'it attached',
    (error: unknown) => error,
  );
const completions = ({ requests }: PickyServer) => requests.filter(({ path }) => path.endsWith('completions'));
const facts = (engine: RunningEngine) => engine.effective as Record<string, unknown>;

describe('a server is found out', () => {
  test('one that takes and tells everything', async () => {
    const { engine } = await found({ metrics: '# HELP x y\nvllm:num_requests_running{engine="0"} 0\n' });
    expect(facts(engine)).toMatchObject({
      promptsAs: 'ids',
      promptTokensExact: true,
      tokenIds: true,
      usage: true,
      exactLength: true,
      finishReason: 'length',
      doneMarker: true,
      droppedFields: [],
      metrics: 'vllm',
      modelListed: true,
      cannotTell: [],
    });
    expect(engine.notes).toEqual([]);
    expect(engine).toMatchObject({
      pid: null,
      startTime: null,
      command: [],
      canary: { promptTokens: 16, outputTokens: 8 },
    });
    expect(await engine.scrape(1000)).toContain('vllm:num_requests_running');
  });

  test('one that refuses fields by name: they are left out, one after the other, and said', async () => {
    const { engine } = await found({ refuses: ['return_token_ids', 'ignore_eos'], returnsIds: false });
    expect(facts(engine)).toMatchObject({
      droppedFields: ['return_token_ids', 'ignore_eos'],
      tokenIds: false,
      usage: true,
    });
    expect(Object.keys(engine.dialect.fields)).not.toContain('ignore_eos');
    expect(facts(engine)['cannotTell']).toEqual(['token ids', 'metrics: prefix hits, preemptions, restarts']);
  });

  test('one that refuses fields without naming them: those beyond the standard are left out', async () => {
    const { engine } = await found({ refusesSilently: ['return_token_ids'] });
    expect(facts(engine)['droppedFields']).toEqual(['return_token_ids', 'ignore_eos']);
  });

  test('without ids, continuous usage is asked for and kept where it comes', async () => {
    const { engine } = await found({ returnsIds: false, usage: 'continuous' });
    expect(facts(engine)).toMatchObject({ continuousUsage: true });
    expect(engine.dialect.fields['stream_options']).toEqual({ include_usage: true, continuous_usage_stats: true });
    const { engine: other } = await found({ returnsIds: false, usage: 'end' });
    expect(other.dialect.fields['stream_options']).toEqual({ include_usage: true });
  });

  test('what it does not tell is null, not guessed', async () => {
    const { engine } = await found({ returnsIds: false, usage: 'none', models: [], health: 404 });
    expect(facts(engine)).toMatchObject({
      promptTokensReported: false,
      promptTokensExact: null,
      exactLength: null,
      modelListed: null,
      health: null,
      cannotTell: ['prompt tokens', 'token ids', 'usage', 'metrics: prefix hits, preemptions, restarts'],
    });
    expect(engine.canary).toMatchObject({ promptTokens: null, outputTokens: null });
    expect(await engine.scrape(1000)).toBeNull();
  });

  test('a BOS token of its own, and an answer that ends early', async () => {
    const { engine } = await found({ extraPromptTokens: 1, ignoresEos: false });
    expect(facts(engine)).toMatchObject({ promptTokensExact: false, exactLength: false, finishReason: 'stop' });
    expect(engine.notes.map(({ code }) => code)).toEqual(['cannot_tell', 'prompt_not_exact', 'length_not_exact']);
    expect(engine.notes[1]?.message).toBe('the canary sent 16 prompt tokens, the server counted 17');
  });

  test('text is sent where ids are refused and there is a tokenizer', async () => {
    const { engine, server } = await found({ takesIds: false }, {}, 't1 t2 t3');
    expect(facts(engine)).toMatchObject({ promptsAs: 'text', promptTokensExact: null });
    expect(completions(server).at(-1)?.body['prompt']).toBe('t1 t2 t3');
  });

  test('a metrics page of another kind is said to be one; a web page under /metrics is none', async () => {
    const { engine } = await found({ metrics: 'llamacpp:prompt_tokens_total 4\n' });
    expect(facts(engine)['metrics']).toBe('other');
  });
});

describe('the way to it', () => {
  test('base paths, with or without their version', async () => {
    const server = await serverOf({ base: '/base' });
    for (const url of [server.url, `${server.url}/v1`, `${server.url}/v1/`]) {
      const engine = await attach(url);
      expect(engine.dialect.path).toBe('/base/v1/completions');
    }
  });

  test('key, headers and further fields reach every request; the key is nowhere in what is kept', async () => {
    const key = 'a-key-that-nobody-may-see';
    process.env['ATTACH_TEST_KEY'] = key;
    process.env['ATTACH_TEST_TEAM'] = 'team-secret-value';
    const { engine, server } = await found(
      { authorization: `Bearer ${key}` },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the config's own syntax
      { apiKeyEnv: 'ATTACH_TEST_KEY', headers: { 'X-Team-Token': '${ATTACH_TEST_TEAM}' }, extraBody: { top_k: 1 } },
    );
    expect(server.requests.every(({ headers }) => headers['x-team-token'] === 'team-secret-value')).toBe(true);
    expect(completions(server).every(({ body }) => body['top_k'] === 1)).toBe(true);
    expect(JSON.stringify(engine.effective)).not.toMatch(/nobody|team-secret/);
    expect(facts(engine)).toMatchObject({
      keyFrom: 'environment variable ATTACH_TEST_KEY',
      headerNames: ['X-Team-Token'],
    });
  });

  test('https: the authority is asked for, and an unverified one is written down', async () => {
    const authority = testAuthority();
    const picky = { tls: { key: authority.key, cert: authority.cert } };
    expect(await failure(picky)).toMatchObject({
      code: 'certificate_refused',
      advice: expect.stringMatching(/--ca-file.*--insecure/),
    });
    const { engine } = await found(picky, { caFile: authority.caFile });
    expect(facts(engine)).toMatchObject({ certificate: 'verified', caFile: authority.caFile });
    expect(engine.endpoint.tls).toMatchObject({ insecure: false });
    const { engine: unverified } = await found(picky, { insecure: true });
    expect(facts(unverified)['certificate']).toContain('NOT VERIFIED');
    expect(unverified.notes[0]).toMatchObject({ code: 'certificate_not_verified' });
  });

  test('plain HTTP asked of a TLS port, and no certificate in the file of authorities', async () => {
    const authority = testAuthority();
    const server = await serverOf({ tls: { key: authority.key, cert: authority.cert } });
    await expect(attach(server.url.replace('https:', 'http:'))).rejects.toMatchObject({ code: 'unreachable' });
    const empty = join(scratchFolder(), 'empty.pem');
    writeFileSync(empty, 'nothing\n');
    await expect(attach(server.url, { caFile: empty })).rejects.toMatchObject({ code: 'ca_unreadable', exitCode: 4 });
  });
});

describe("what cannot be used is refused with the server's own words", () => {
  test('401: the key that it quotes is taken out', async () => {
    process.env['ATTACH_TEST_KEY'] = 'wrong-key-0123456789';
    const error = await failure({ authorization: 'Bearer right' }, { apiKeyEnv: 'ATTACH_TEST_KEY' });
    expect(error).toMatchObject({ code: 'unauthorized', message: expect.stringContaining('Incorrect API key') });
    expect(JSON.stringify(error) + String(error)).not.toContain('wrong-key');
  });

  test('a missing key is told before anything is sent', async () => {
    delete process.env['ATTACH_TEST_NONE'];
    expect(await failure({}, { apiKeyEnv: 'ATTACH_TEST_NONE' })).toMatchObject({
      code: 'api_key_missing',
      exitCode: 2,
    });
    expect(await failure({}, { apiKeyFile: '/nowhere/key' })).toMatchObject({ code: 'api_key_missing', exitCode: 2 });
  });

  test.each<[string, NonNullable<Picky['instead']>]>([
    [
      'redirected',
      (response) => {
        response.writeHead(302, { location: 'https://login.example/' }).end();
        return true;
      },
    ],
    [
      'not_an_api',
      (response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Please sign in</html>');
        return true;
      },
    ],
    [
      'not_streaming',
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"choices":[{"text":"a"}]}');
        return true;
      },
    ],
    [
      'rate_limited',
      (response) => {
        response.writeHead(429).end('slow down');
        return true;
      },
    ],
  ])('%s', async (code, instead) => {
    const error = (await failure({ instead })) as { message: string };
    expect(error).toMatchObject({ code });
    const said = {
      redirected: 'login.example',
      not_an_api: 'sign in',
      not_streaming: 'one piece',
      rate_limited: 'slow down',
    };
    expect(error.message).toContain(said[code as keyof typeof said]);
  });

  test('ids without a tokenizer, an unknown model, and a request that does not fit', async () => {
    expect(await failure({ takesIds: false })).toMatchObject({
      code: 'ids_refused',
      advice: expect.stringContaining('--tokenizer'),
    });
    const refuse =
      (status: number, message: string): NonNullable<Picky['instead']> =>
      (response) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message } }));
        return true;
      };
    expect(await failure({ models: ['other'], instead: refuse(404, 'no such model') })).toMatchObject({
      code: 'model_not_served',
      message: expect.stringContaining('other'),
    });
    const tooLong: NonNullable<Picky['instead']> = (response, nth, request) =>
      nth > 1 && refuse(400, 'maximum context length is 100 tokens')(response, nth, request);
    expect(await failure({ instead: tooLong })).toMatchObject({
      code: 'canary_failed',
      message: expect.stringContaining('maximum context length'),
    });
  });

  test('nobody there', async () => {
    await expect(attach('http://127.0.0.1:1')).rejects.toMatchObject({ code: 'unreachable' });
  });
});

test('a server that stops answering is noticed; refusals and releases are no death', async () => {
  const server = await serverOf({ health: 403 });
  const probe = new Probe({ host: '127.0.0.1', port: server.port });
  open.push(() => probe.close());
  const limits = { pollMs: 20, failingMs: 100, silentMs: 10_000 };
  const stopping = new AbortController();
  const watch = { probe, path: '/health', clock: systemClock, limits, stopping: stopping.signal };
  let released = false;
  const other = new AbortController();
  void watchAttached({ ...watch, stopping: other.signal }).then(() => {
    released = true;
  });
  const died = watchAttached(watch);
  await new Promise((done) => setTimeout(done, 300));
  other.abort();
  await server.close();
  expect(await died).toMatch(/stopped answering: \/health .* for/);
  expect(released).toBe(false);
});
