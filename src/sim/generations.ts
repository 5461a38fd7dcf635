// Running one generation for one client: events out as tokens come in, faults in the middle, and the end.

import type { ServerResponse } from 'node:http';
import type { Backend, Generation } from './backend.ts';
import type { EngineFaults, RequestFault } from './engine-faults.ts';
import { answerBody, DONE_EVENT, errorEvent, tokenEvent, usageEvent } from './event-shapes.ts';
import { EventStream } from './event-stream.ts';
import type { ApiError, GenerationRequest } from './generation-request.ts';
import { sendError, sendJson, uvicornHeaders } from './http-responses.ts';
import { answerToken } from './tokens.ts';

const DEAD_CORE: ApiError = {
  status: 500,
  type: 'InternalServerError',
  message: 'EngineCore encountered an issue. See stack trace (above) for the root cause.',
  param: null,
};
const INTERNAL: ApiError = { ...DEAD_CORE, message: 'Internal server error' };
const OVERLOADED: ApiError = {
  status: 503,
  type: 'ServiceUnavailableError',
  message: 'The engine has too many queued requests.',
  param: null,
};

export interface GenerationsOptions {
  readonly backend: Backend;
  readonly faults: EngineFaults;
  readonly vocabulary: readonly [number, number];
}

export class Generations {
  readonly #options: GenerationsOptions;
  /** What a dead engine core does to each open response. */
  readonly #open = new Map<ServerResponse, () => void>();
  #state: 'alive' | 'dead' | 'hung' = 'alive';

  constructor(options: GenerationsOptions) {
    this.#options = options;
  }

  get inFlight(): number {
    return this.#open.size;
  }

  /** Nothing more is sent on any response. */
  hang(): void {
    this.#state = 'hung';
  }

  /** The engine core died: open streams end with an error inside their 200, later requests get a 500. */
  die(): void {
    this.#state = 'dead';
    for (const end of [...this.#open.values()]) end();
  }

  start(request: GenerationRequest, response: ServerResponse, receivedNs: bigint): void {
    const fault = this.#options.faults.nextRequestFault();
    if (this.#state === 'dead') sendError(response, DEAD_CORE);
    else if (fault === 'http_503') sendError(response, OVERLOADED);
    else if (request.outOfVocabulary !== null) rejectToken(request, request.outOfVocabulary, response);
    else if (request.stream) this.#stream(request, response, receivedNs, fault);
    else this.#answer(request, response, receivedNs);
  }

  #stream(request: GenerationRequest, response: ServerResponse, receivedNs: bigint, fault: RequestFault | null): void {
    const { backend, vocabulary } = this.#options;
    const stream = new EventStream(response, uvicornHeaders());
    const cutAt = fault === null ? Number.POSITIVE_INFINITY : Math.floor(request.maxTokens / 2);
    const onToken = (index: number, _atNs: number, last: boolean) => {
      if (this.#state === 'hung') return;
      if (index >= cutAt) {
        generation.abort();
        breakStream(stream, fault);
        return;
      }
      stream.write(tokenEvent(request, index, answerToken(request.promptTokens, index, vocabulary), last));
      if (last) stream.finish(closingEvents(request, index + 1, generation));
    };
    const generation = backend.submit(request, { onToken }, receivedNs);
    this.#watch(response, generation, () => stream.finish([errorEvent(INTERNAL), DONE_EVENT]));
  }

  #answer(request: GenerationRequest, response: ServerResponse, receivedNs: bigint): void {
    const { backend, vocabulary } = this.#options;
    const tokens: number[] = [];
    const onToken = (index: number, _atNs: number, last: boolean) => {
      tokens.push(answerToken(request.promptTokens, index, vocabulary));
      if (!last || this.#state === 'hung') return;
      sendJson(response, 200, answerBody(request, tokens, generation.cachedTokens()));
    };
    const generation = backend.submit(request, { onToken }, receivedNs);
    this.#watch(response, generation, () => sendError(response, DEAD_CORE));
  }

  #watch(response: ServerResponse, generation: Generation, onDeath: () => void): void {
    this.#open.set(response, () => {
      generation.abort();
      onDeath();
    });
    response.once('close', () => {
      this.#open.delete(response);
      generation.abort();
    });
  }
}

function closingEvents(request: GenerationRequest, outputTokens: number, generation: Generation): string[] {
  const usage = request.includeUsage ? [usageEvent(request, outputTokens, generation.cachedTokens())] : [];
  return [...usage, DONE_EVENT];
}

function breakStream(stream: EventStream, fault: RequestFault | null): void {
  if (fault === 'error_in_band') stream.finish([errorEvent(INTERNAL), DONE_EVENT]);
  else if (fault === 'reset') stream.cut(true);
  else if (fault === 'truncate') stream.cut(false);
}

/** In a stream vLLM has sent its 200 before it looks at the ids. */
function rejectToken(request: GenerationRequest, id: number, response: ServerResponse): void {
  const message = `Token id ${id} is out of vocabulary`;
  const error: ApiError = { status: 400, type: 'BadRequestError', message, param: null };
  if (request.stream) new EventStream(response, uvicornHeaders()).finish([errorEvent(error), DONE_EVENT]);
  else sendError(response, error);
}
