import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/core/index.ts';
import { judgeCanary, readCanary } from '../../src/engines/canary.ts';
import { completionsDialect } from '../../src/engines/driver.ts';
import { baseUrl, Probe } from '../../src/engines/probe.ts';
import { cacheConfigLabels, vllmCacheConfig } from '../../src/engines/read-back.ts';
import { awaitReady, modelEntry } from '../../src/engines/readiness.ts';
import { real } from './support/files.ts';
import { jsonReply, OK_EMPTY, replay } from './support/replay.ts';

const body = (name: string): string => real(name).slice(real(name).indexOf('\r\n\r\n') + 4);
const MODELS = jsonReply({ data: [{ id: 'bench', object: 'model', max_model_len: 2048 }] });
const PROMPT = Array.from({ length: 32 }, (_, at) => 100 + at);

async function server(routes: Record<string, string | null>) {
  const played = await replay({ 'GET /health': OK_EMPTY, 'GET /v1/models': MODELS, ...routes });
  const probe = new Probe(played.endpoint);
  onTestFinished(async () => {
    await probe.close();
    await played.close();
  });
  return { ...played, probe };
}

function ready(probe: Probe, over: { timeoutMs?: number; signal?: AbortSignal; maxModelLen?: number } = {}) {
  return awaitReady({
    probe,
    dialect: completionsDialect('bench'),
    servedName: 'bench',
    maxModelLen: 2048,
    canaryPrompt: PROMPT,
    timeoutMs: 5000,
    clock: systemClock,
    signal: new AbortController().signal,
    ...over,
  });
}

describe('a canary read from real bytes', () => {
  test('counts prompt, output and ids, from the last usage', () => {
    expect(readCanary(body('completions_continuous.http'))).toEqual({
      promptTokens: 32,
      outputTokens: 3,
      idTokens: 3,
      finishReason: 'length',
      error: null,
    });
  });

  test('without ids still has its usage', () => {
    expect(readCanary(body('completions.http'))).toMatchObject({
      promptTokens: 32,
      idTokens: null,
      finishReason: 'length',
    });
    expect(readCanary(body('nonstream.http'))).toMatchObject({
      promptTokens: 32,
      outputTokens: 3,
      finishReason: 'length',
    });
  });

  test.each([
    ['bad_id.http', 200, /HTTP 200.*Token id 600000 is out of vocabulary/],
    ['bad_model.http', 404, /HTTP 404.*does not exist/],
    ['too_long.http', 400, /maximum context length is 2048/],
    ['bad_json.http', 400, /validation error/],
  ])('%s is a failed canary and quotes the server', (name, status, message) => {
    const judge = () => judgeCanary({ status, text: body(name) }, { promptTokens: 32, outputTokens: 3 }, 1);
    expect(judge).toThrow(expect.objectContaining({ code: 'canary_failed' }));
    expect(judge).toThrow(message);
  });

  test.each([
    ['a prompt that the server counts differently', { promptTokens: 31, outputTokens: 3 }],
    ['an output of another length', { promptTokens: 32, outputTokens: 4 }],
  ])('%s is a mismatch', (_name, asked) => {
    const judge = () => judgeCanary({ status: 200, text: body('completions_continuous.http') }, asked, 1);
    expect(judge).toThrow(expect.objectContaining({ code: 'canary_mismatch' }));
  });

  test('an answer without usage, or cut before the finish reason, is a mismatch', () => {
    const asked = { promptTokens: 32, outputTokens: 3 };
    const whole = body('completions_continuous.http');
    for (const text of ['data: [DONE]\n\n', whole.slice(0, whole.indexOf('"length"'))]) {
      expect(() => judgeCanary({ status: 200, text }, asked, 1)).toThrow(
        expect.objectContaining({ code: 'canary_mismatch' }),
      );
    }
  });
});

describe('readiness', () => {
  test('asks health, then models, then for a completion, in this order', async () => {
    const completion = real('completions_continuous.http')
      .replaceAll('"completion_tokens":3', '"completion_tokens":4')
      .replace('"token_ids":[99]', '"token_ids":[99,99]');
    const { probe, seen } = await server({ 'POST /v1/completions': completion });
    const { canary, model, tokenIds } = await ready(probe);
    expect(seen).toEqual(['GET /health', 'GET /v1/models', 'POST /v1/completions']);
    expect(canary).toMatchObject({ promptTokens: 32, outputTokens: 4 });
    expect(model).toMatchObject({ max_model_len: 2048 });
    expect(tokenIds).toBe(true);
  });

  test('an error dressed as a stream is no readiness', async () => {
    const { probe } = await server({ 'POST /v1/completions': real('bad_id.http') });
    await expect(ready(probe)).rejects.toMatchObject({ code: 'canary_failed' });
  });

  test('another model, another length, or no list at all is another server', async () => {
    expect(() => modelEntry({ data: [{ id: 'x' }] }, 'bench', 2048)).toThrow('it lists: x');
    expect(() => modelEntry(null, 'bench', 2048)).toThrow('it lists: none');
    expect(() => modelEntry({ data: [{ id: 'bench' }] }, 'bench', 2048)).toThrow('max_model_len undefined');
    const { probe } = await server({});
    await expect(ready(probe, { maxModelLen: 4096 })).rejects.toMatchObject({ code: 'wrong_server' });
  });

  test('a health that never turns good runs into the limit and says what was missing', async () => {
    const { probe } = await server({ 'GET /health': 'HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n' });
    const error = await ready(probe, { timeoutMs: 300 }).catch((each) => each);
    expect(error).toMatchObject({ code: 'engine_not_ready', message: expect.stringContaining('/health answered 503') });
  });

  test('static routes that answer while completions hang are no readiness', async () => {
    const { probe } = await server({ 'POST /v1/completions': null });
    const error = await ready(probe, { timeoutMs: 400 }).catch((each) => each);
    expect(error).toMatchObject({ code: 'engine_not_ready', message: expect.stringContaining('canary') });
  });

  test('an abort ends the wait with its own reason', async () => {
    const { probe } = await server({ 'GET /health': null });
    const stop = new AbortController();
    setTimeout(() => stop.abort(new Error('enough')), 50);
    await expect(ready(probe, { signal: stop.signal })).rejects.toThrow('enough');
  });
});

describe('probes', () => {
  test('tell refusal, silence and rubbish apart, and throw for none', async () => {
    const { probe, close } = await server({ 'GET /slow': null, 'GET /rubbish': 'SMTP ready\r\n\r\n' });
    expect(await probe.get('/slow', { timeoutMs: 60 })).toMatchObject({ status: null, reason: 'timeout' });
    expect(await probe.get('/rubbish', { timeoutMs: 1000 })).toMatchObject({ status: null, reason: 'broken' });
    await close();
    expect(await probe.get('/health', { timeoutMs: 1000 })).toMatchObject({ status: null, reason: 'refused' });
  });

  test('read a real /metrics and its cache configuration', async () => {
    const text = real('metrics_after.txt');
    const head = `HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(text)}\r\ncontent-type: text/plain\r\n\r\n`;
    const { probe } = await server({ 'GET /metrics': `${head}${text}` });
    expect(await vllmCacheConfig(probe)).toMatchObject({ engine: '0', block_size: expect.stringMatching(/^\d+$/) });
    expect(cacheConfigLabels('vllm:other 1')).toBeNull();
    expect(cacheConfigLabels('vllm:cache_config_info{a="x\\"y,z",b="1"} 1.0')).toEqual({ a: 'x"y,z', b: '1' });
  });

  test('write an IPv6 address as URLs want it', () => {
    expect(baseUrl({ host: '::1', port: 80 })).toBe('http://[::1]:80');
  });
});
