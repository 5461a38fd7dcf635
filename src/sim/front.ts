// The mock engine's HTTP face: which route does what.

import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../core/index.ts';
import type { Backend } from './backend.ts';
import type { EngineFaults } from './engine-faults.ts';
import { type GenerationRequest, readGenerationRequest } from './generation-request.ts';
import { Generations } from './generations.ts';
import { sendError, sendJson, sendText } from './http-responses.ts';
import type { MockEngineOptions } from './mock-options.ts';

/** The vLLM version whose interface is imitated, marked as an imitation. */
export const MOCK_VERSION = '0.32.0+tokbench.mock';

const METRICS_TYPE = 'text/plain; version=1.0.0; charset=utf-8';

export interface FrontOptions {
  readonly engine: MockEngineOptions;
  readonly backend: Backend;
  readonly faults: EngineFaults;
  readonly clock: Clock;
}

type Route = (request: IncomingMessage, response: ServerResponse) => void;

export class Front {
  readonly #options: FrontOptions;
  readonly #generations: Generations;
  readonly #routes: ReadonlyMap<string, Route>;
  #dead = false;
  #hung = false;

  constructor(options: FrontOptions) {
    const { engine, backend, faults } = options;
    this.#options = options;
    this.#generations = new Generations({ backend, faults, vocabulary: engine.vocabulary });
    this.#routes = this.#table();
  }

  get inFlight(): number {
    return this.#generations.inFlight;
  }

  /** From now on connections are accepted and nothing is answered. */
  hang(): void {
    this.#hung = true;
    this.#generations.hang();
  }

  engineDied(): void {
    this.#dead = true;
    this.#generations.die();
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    if (this.#hung) return;
    response.sendDate = false;
    response.removeHeader('connection');
    const path = (request.url ?? '/').split('?', 1)[0]!;
    const route = this.#routes.get(`${request.method} ${path}`);
    if (route !== undefined) route(request, response);
    else {
      request.resume();
      sendJson(response, 404, { detail: 'Not Found' });
    }
  }

  #table(): Map<string, Route> {
    const { engine, backend } = this.#options;
    const simple =
      (answer: (response: ServerResponse) => void): Route =>
      (request, response) => {
        request.resume();
        answer(response);
      };
    return new Map<string, Route>([
      ['GET /health', simple((response) => sendText(response, this.#dead ? 503 : 200, null, ''))],
      ['GET /version', simple((response) => sendJson(response, 200, { version: MOCK_VERSION }))],
      ['GET /v1/models', simple((response) => sendJson(response, 200, modelList(engine, this.#createdS())))],
      ['GET /metrics', simple((response) => sendText(response, 200, METRICS_TYPE, backend.metrics()))],
      [
        'POST /reset_prefix_cache',
        simple((response) => {
          backend.resetPrefixCache();
          sendJson(response, 200, { success: true });
        }),
      ],
      ...(backend.retime === undefined ? [] : [['POST /fixed_truth', this.#retime] as const]),
      ['POST /v1/completions', (request, response) => this.#receive('completion', request, response)],
      ['POST /v1/chat/completions', (request, response) => this.#receive('chat', request, response)],
    ]);
  }

  /** `?ttft_ms=50&itl_ms=20`: later requests are answered with this timing. */
  readonly #retime: Route = (request, response) => {
    request.resume();
    const query = new URL(request.url ?? '/', 'http://mock').searchParams;
    const [ttftMs, itlMs] = ['ttft_ms', 'itl_ms'].map((name) => Number(query.get(name) ?? Number.NaN));
    const fine = [ttftMs!, itlMs!].every((ms) => Number.isFinite(ms) && ms >= 0);
    if (fine) this.#options.backend.retime?.(ttftMs!, itlMs!);
    sendJson(
      response,
      fine ? 200 : 400,
      fine ? { ttft_ms: ttftMs, itl_ms: itlMs } : { detail: 'give ttft_ms, itl_ms' },
    );
  };

  #createdS(): number {
    return Math.floor(this.#options.clock.wallMs() / 1000);
  }

  /** Reads the body, noting when its last byte was there, and starts the generation. */
  #receive(kind: GenerationRequest['kind'], request: IncomingMessage, response: ServerResponse): void {
    const { clock, engine } = this.#options;
    const chunks: Buffer[] = [];
    let receivedNs = clock.monotonicNs();
    request.on('data', (chunk: Buffer) => {
      receivedNs = clock.monotonicNs();
      chunks.push(chunk);
    });
    request.on('error', () => response.destroy());
    request.on('end', () => {
      const header = request.headers['x-request-id'];
      const requestId = typeof header === 'string' ? header : '';
      const fallbackId = randomBytes(8).toString('hex');
      const facts = { kind, requestId, fallbackId, createdS: this.#createdS() };
      const read = readGenerationRequest(Buffer.concat(chunks).toString('utf8'), facts, engine);
      if ('error' in read) sendError(response, read.error);
      else this.#generations.start(read.request, response, receivedNs);
    });
  }
}

function modelList({ servedName, maxModelLen }: MockEngineOptions, created: number) {
  const model = { id: servedName, object: 'model', created, owned_by: 'vllm', root: servedName, parent: null };
  return { object: 'list', data: [{ ...model, max_model_len: maxModelLen, permission: [] }] };
}
