import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { parseEngineFaults } from '../../src/sim/engine-faults.ts';
import { checkMockOptions, MOCK_ENGINE_DEFAULTS } from '../../src/sim/mock-options.ts';
import { eventsOf, exchange } from '../support/sim/http.ts';
import { freePort, printed, spawnEngine, startEngine } from '../support/sim/processes.ts';

const STREAM = { stream: true, stream_options: { include_usage: true }, prompt: [7, 8], max_tokens: 8 };
const LONG = { ...STREAM, max_tokens: 3000 };
const CONTENT = '"text":';

describe('start and stop', () => {
  test('the port refuses until the engine is ready', async () => {
    const port = await freePort();
    const run = spawnEngine({ port, faults: ['never_ready'] });
    await printed(run, 'Starting vLLM server');
    const refused = fetch(`http://127.0.0.1:${port}/health`).then(
      () => 'answered',
      () => 'refused',
    );
    expect(await refused).toBe('refused');
    run.child.kill('SIGTERM');
    expect(await run.exited).toBe(143);
  });

  test("a busy port ends it with vLLM's last line", async () => {
    const holder = createServer();
    const port = await freePort();
    await new Promise<void>((done) => holder.listen(port, '127.0.0.1', done));
    const run = spawnEngine({ port });
    expect(await run.exited).toBe(1);
    expect(run.output().trimEnd().split('\n').at(-1)).toBe('OSError: [Errno 98] Address already in use');
    holder.close();
  });

  test('a KV cache smaller than one request is refused at start', async () => {
    const run = spawnEngine({ port: await freePort(), kvTokens: 1024, maxModelLen: 4096 });
    expect(await run.exited).toBe(1);
    expect(run.output()).toContain("To serve at least one request with the model's max seq len (4096)");
  });

  test('SIGTERM ends it with 0, at once when idle and soon with a stream in flight', async () => {
    for (const busy of [false, true]) {
      const engine = await startEngine();
      const stream = busy ? exchange({ port: engine.port, path: '/v1/completions', body: LONG }) : null;
      if (busy) await new Promise((resolve) => setTimeout(resolve, 150));
      engine.child.kill('SIGTERM');
      expect(await engine.exited).toBe(0);
      if (stream !== null) expect((await stream).text).not.toContain('[DONE]');
    }
  });

  test('a lost board ends it with 1', async () => {
    const run = spawnEngine({ port: await freePort(), gpuSocket: '/nonexistent/gpu.sock' });
    expect(await run.exited).toBe(1);
    expect(run.output()).toContain('/nonexistent/gpu.sock');
  });
});

describe('process faults', () => {
  test('die_at_start exits with its code before it is ready', async () => {
    const run = spawnEngine({ port: await freePort(), faults: ['die_at_start:7'] });
    expect(await run.exited).toBe(7);
    expect(run.output()).toContain('Engine core initialization failed');
  });

  test('die_after cuts the stream without a word', async () => {
    const engine = await startEngine({ faults: ['die_after:0.8'] });
    const { text } = await exchange({ port: engine.port, path: '/v1/completions', body: LONG });
    expect(text).toContain(CONTENT);
    expect(text).not.toContain('[DONE]');
    expect(await engine.exited).toBe(null);
  });

  test('a dead engine core ends streams with an error inside the 200, and health says 503', async () => {
    const engine = await startEngine({ faults: ['engine_dead_after:0.8'] });
    const { text } = await exchange({ port: engine.port, path: '/v1/completions', body: LONG });
    expect(text.startsWith('HTTP/1.1 200')).toBe(true);
    expect(eventsOf(text).at(-1)).toMatchObject({ error: { type: 'InternalServerError', code: 500 } });
    expect(text).toContain('data: [DONE]');
    expect((await fetch(`${engine.url}/health`)).status).toBe(503);
    await engine.kill();
  });
});

describe('request faults', () => {
  const broken = async (fault: string, until?: string) => {
    const engine = await startEngine({ faults: [fault] });
    const body = STREAM;
    const result = await exchange({ port: engine.port, path: '/v1/completions', body, ...(until ? { until } : {}) });
    await engine.kill();
    return result;
  };
  const tokens = (text: string) => text.split(CONTENT).length - 1;

  test('error_in_band', async () => {
    const { text } = await broken('error_in_band:1');
    expect(tokens(text)).toBe(4);
    expect(text).toContain('"InternalServerError"');
    expect(text).not.toContain('"usage"');
    expect(text).toContain('[DONE]');
  });

  test('reset, truncate and http_503', async () => {
    const [reset, truncated, refused] = await Promise.all([
      broken('reset:1'),
      broken('truncate:1'),
      broken('http_503:1', '}'),
    ]);
    expect([tokens(reset.text), reset.error]).toEqual([4, 'ECONNRESET']);
    expect([tokens(truncated.text), truncated.error]).toEqual([4, null]);
    expect(truncated.text).not.toContain('[DONE]');
    expect(refused.text).toMatch(/^HTTP\/1\.1 503 /);
  });
});

describe('options and fault flags', () => {
  test('bad ones are named', () => {
    for (const flag of ['gremlin', 'die_after', 'stall', 'reset:2', 'http_503:x', 'hang_after:-1']) {
      expect(() => parseEngineFaults([flag], 0), flag).toThrow(flag.split(':')[0]!);
    }
    for (const bad of [{ port: 0 }, { maxSeqs: 1.5 }, { vocabulary: [9, 9] as const }, { startupS: Number.NaN }]) {
      expect(() => checkMockOptions({ ...MOCK_ENGINE_DEFAULTS, ...bad })).toThrow(/mock engine cannot run/);
    }
  });

  test('the same seed breaks the same requests', () => {
    const draw = (seed: number) => {
      const faults = parseEngineFaults(['reset:0.3', 'stall:0.2'], seed);
      return Array.from({ length: 200 }, () => faults.nextRequestFault());
    };
    expect(draw(5)).toEqual(draw(5));
    expect(draw(5)).not.toEqual(draw(6));
    const resets = draw(5).filter((fault) => fault === 'reset').length;
    expect(resets).toBeGreaterThan(30);
    expect(resets).toBeLessThan(90);
  });
});
