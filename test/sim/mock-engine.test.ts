import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventsOf, exchange, metricValue } from '../support/sim/http.ts';
import { SimClient, startEngine, startGpu } from '../support/sim/processes.ts';

const LABELS = '{engine="0",model_name="bench"}';
const STREAM = { stream: true, stream_options: { include_usage: true }, ignore_eos: true, temperature: 0 };

let gpu: Awaited<ReturnType<typeof startGpu>>;
let engine: Awaited<ReturnType<typeof startEngine>>;

beforeAll(async () => {
  gpu = await startGpu();
  engine = await startEngine({ gpuSocket: gpu.socketPath, maxModelLen: 2048 });
});
afterAll(async () => {
  await engine.kill();
  await gpu.kill();
});

const post = (path: string, body: unknown, extra: { headers?: Record<string, string>; until?: string } = {}) =>
  exchange({ port: engine.port, path, body, ...extra });
const scrape = async () => (await fetch(`${engine.url}/metrics`)).text();

/** Waits until the engine says that nothing runs; a test that hangs here fails by its time limit. */
async function drained(): Promise<string> {
  for (;;) {
    const metrics = await scrape();
    const busy = metricValue(metrics, 'vllm:num_requests_running') + metricValue(metrics, 'vllm:num_requests_waiting{');
    if (busy === 0) return metrics;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe('routes', () => {
  test('health, version and models answer as vLLM does', async () => {
    const health = await fetch(`${engine.url}/health`);
    expect([health.status, await health.text()]).toEqual([200, '']);
    expect(await (await fetch(`${engine.url}/version`)).json()).toEqual({ version: '0.32.0+tokbench.mock' });
    const models = (await (await fetch(`${engine.url}/v1/models`)).json()) as { data: unknown[] };
    expect(models.data[0]).toMatchObject({ id: 'bench', max_model_len: 2048 });
    expect((await fetch(`${engine.url}/nope`)).status).toBe(404);
  });

  test('the start-up log has the milestones in order', () => {
    const order = [
      'vLLM server version',
      'Starting to load model',
      'GPU KV cache size',
      'init engine',
      'Starting vLLM server',
    ];
    const at = order.map((text) => engine.output().indexOf(text));
    expect(at.every((position) => position >= 0)).toBe(true);
    expect(at).toEqual(at.toSorted((a, b) => a - b));
  });

  test('the engine holds a context on the board', async () => {
    const client = await SimClient.open(gpu.socketPath);
    expect((await client.call('processes'))['pids']).toContain(`${engine.child.pid}:`);
    await client.close();
  });
});

describe('streams', () => {
  test('have the headers, events and end of the recorded ones', async () => {
    const body = { ...STREAM, model: 'bench', prompt: [100, 101, 102], max_tokens: 3 };
    const { text } = await post('/v1/completions', body, { headers: { 'x-request-id': 'r1' } });
    expect(text).toMatch(
      /^HTTP\/1\.1 200 OK\r\ndate: [^\r]+ GMT\r\nserver: uvicorn\r\ncontent-type: text\/event-stream; charset=utf-8\r\nvary: Origin\r\ntransfer-encoding: chunked\r\n\r\n/,
    );
    expect(text.endsWith('data: [DONE]\n\n\r\n0\r\n\r\n')).toBe(true);
    const events = eventsOf(text);
    expect(events).toHaveLength(4);
    expect(Object.keys(events[0]!)).toEqual(['id', 'object', 'created', 'model', 'choices']);
    expect(events[0]).toMatchObject({ id: 'cmpl-r1', object: 'text_completion', model: 'bench' });
    expect((events[0]!['choices'] as object[])[0]).toEqual({
      index: 0,
      text: expect.stringMatching(/^ t\d+$/),
      logprobs: null,
      finish_reason: null,
      stop_reason: null,
      prompt_token_ids: null,
      token_ids: null,
    });
    expect((events[2]!['choices'] as object[])[0]).toMatchObject({ finish_reason: 'length' });
    expect(events[3]).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 3, total_tokens: 6, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 0 } },
    });
  });

  test('bring token ids and continuous usage on request', async () => {
    const options = { include_usage: true, continuous_usage_stats: true };
    const body = { ...STREAM, prompt: [100, 101], max_tokens: 2, return_token_ids: true, stream_options: options };
    const events = eventsOf((await post('/v1/completions', body)).text);
    expect(events.map((event) => (event['usage'] as { completion_tokens: number }).completion_tokens)).toEqual([
      1, 2, 2,
    ]);
    const choices = events.slice(0, 2).map((event) => (event['choices'] as Record<string, unknown>[])[0]!);
    expect(choices[0]!['prompt_token_ids']).toEqual([100, 101]);
    expect(choices[1]!['prompt_token_ids']).toBe(null);
    for (const choice of choices) expect(choice['text']).toBe(` t${(choice['token_ids'] as number[])[0]}`);
  });

  test('of a chat begin with a role event', async () => {
    const body = { ...STREAM, messages: [{ role: 'user', content: 'hi there' }], max_tokens: 2 };
    const events = eventsOf((await post('/v1/chat/completions', body)).text);
    expect(events).toHaveLength(4);
    expect(events[0]).toMatchObject({
      object: 'chat.completion.chunk',
      choices: [{ delta: { role: 'assistant', content: '' } }],
    });
    expect(events[3]).toMatchObject({ usage: { prompt_tokens: 2, completion_tokens: 2 } });
  });

  test('an id outside the vocabulary is an error inside a 200', async () => {
    const { text } = await post('/v1/completions', { ...STREAM, prompt: [600000], max_tokens: 2 });
    expect(text.startsWith('HTTP/1.1 200 OK')).toBe(true);
    expect(text).toContain(
      'data: {"error": {"message": "Token id 600000 is out of vocabulary", "type": "BadRequestError", "param": null, "code": 400}}\n\n',
    );
    expect(text).toContain('data: [DONE]\n\n');
  });
});

describe('errors', () => {
  test.each([
    ['bad JSON', '{"model": "bench", ', 400, /JSON decode error/],
    [
      'unknown model',
      { model: 'nope', prompt: [5] },
      404,
      /^The model `nope` does not exist\. Valid aliases: bench\.$/,
    ],
    [
      'prompt too long',
      { prompt: new Array(2100).fill(5) },
      400,
      /maximum context length is 2048 tokens.*2100 input tokens/,
    ],
    ['too many tokens asked', { prompt: [5], max_tokens: 2048 }, 400, /maximum context length is 2048/],
    ['empty prompt', { prompt: [] }, 400, /non-empty/],
    ['no tokens asked', { prompt: [5], max_tokens: 0 }, 400, /max_tokens must be at least 1/],
    ['stream options alone', { prompt: [5], stream_options: { include_usage: true } }, 400, /stream=True/],
  ])('%s', async (_name, body, status, message) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(`${engine.url}/v1/completions`, { method: 'POST', body: text });
    const { error } = (await response.json()) as { error: { message: string; code: number } };
    expect(response.status).toBe(status);
    expect(error.code).toBe(status);
    expect(error.message).toMatch(message);
  });
});

describe('accounting', () => {
  test('counters rise by exactly what clients got, and the drained gauges are 0', async () => {
    const before = await drained();
    const wanted = [5, 1, 9, 3, 7, 2];
    const answers = await Promise.all(
      wanted.map((tokens, index) =>
        post('/v1/completions', { ...STREAM, prompt: [10 + index, 20, 30, 40], max_tokens: tokens }),
      ),
    );
    const got = answers.map(({ text }) => eventsOf(text).length - 1);
    expect(got).toEqual(wanted);
    const after = await drained();
    const rise = (series: string) => metricValue(after, series) - metricValue(before, series);
    expect(rise(`vllm:generation_tokens_total${LABELS}`)).toBe(27);
    expect(rise(`vllm:prompt_tokens_total${LABELS}`)).toBe(24);
    expect(rise('vllm:request_success_total{engine="0",finished_reason="length"')).toBe(6);
    expect(rise(`vllm:prefix_cache_hits_total${LABELS}`)).toBe(0);
    expect(rise(`vllm:time_to_first_token_seconds_count${LABELS}`)).toBe(6);
    expect(metricValue(after, `vllm:kv_cache_usage_perc${LABELS}`)).toBe(0);
  });

  test('a client that leaves ends its request; it is in no finish counter', async () => {
    const before = await drained();
    const body = { ...STREAM, prompt: [50, 51], max_tokens: 1500 };
    await post('/v1/completions', body, { until: '" t' });
    const after = await drained();
    for (const reason of ['length', 'abort']) {
      const series = `vllm:request_success_total{engine="0",finished_reason="${reason}"`;
      expect(metricValue(after, series)).toBe(metricValue(before, series));
    }
  });

  test('a repeated prompt shows in the prefix-cache counter', async () => {
    const prompt = Array.from({ length: 40 }, (_, index) => 200 + index);
    const before = await drained();
    for (let round = 0; round < 2; round += 1) await post('/v1/completions', { ...STREAM, prompt, max_tokens: 1 });
    const after = await drained();
    const series = `vllm:prefix_cache_hits_total${LABELS}`;
    expect(metricValue(after, series) - metricValue(before, series)).toBe(32);
  });
});

describe('with the board', () => {
  test('load follows the requests, and the idle engine leaves the board idle', async () => {
    const client = await SimClient.open(gpu.socketPath);
    await drained();
    const running = post('/v1/completions', { ...STREAM, prompt: new Array(256).fill(5), max_tokens: 12 });
    const reasons = new Set<string>();
    let open = true;
    void running.then(() => {
      open = false;
    });
    while (open) reasons.add((await client.call('read'))['reasons']!);
    await drained();
    expect(reasons.has('0')).toBe(true);
    for (let reading = await client.call('read'); reading['reasons'] !== '1'; reading = await client.call('read')) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await client.close();
  });
});
