// An OpenAI-compatible server for tests, in this process, which takes and tells exactly what it is told to.

import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo } from 'node:net';

export interface Picky {
  /** In front of `/v1`, `/health` and `/metrics`. */
  readonly base?: string;
  readonly tls?: { readonly key: string; readonly cert: string };
  readonly takesIds?: boolean;
  readonly returnsIds?: boolean;
  readonly usage?: 'none' | 'end' | 'continuous';
  /** Added to the counted prompt tokens, as a server with a BOS token does. */
  readonly extraPromptTokens?: number;
  /** Fields refused by name with 400. */
  readonly refuses?: readonly string[];
  /** Fields refused with 400 and a message that names none. */
  readonly refusesSilently?: readonly string[];
  readonly ignoresEos?: boolean;
  readonly health?: number;
  readonly models?: readonly string[] | null;
  readonly metrics?: string | null;
  /** Value of the Authorization header that every route wants; what else comes is quoted back under 401. */
  readonly authorization?: string;
  /** Answers every completion after the first `after` ones. */
  readonly instead?: (response: ServerResponse, nth: number, request: IncomingMessage) => boolean;
}

export interface PickyServer {
  readonly url: string;
  readonly port: number;
  readonly requests: {
    readonly path: string;
    readonly headers: IncomingMessage['headers'];
    readonly body: Record<string, unknown>;
  }[];
  close(): Promise<void>;
}

const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));

export async function pickyServer(picky: Picky = {}): Promise<PickyServer> {
  const seen: PickyServer['requests'] = [];
  let nth = 0;
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
    const base = picky.base ?? '';
    const path = request.url ?? '';
    seen.push({ path, headers: request.headers, body });
    const json = (status: number, value: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    const { authorization } = request.headers;
    if (picky.authorization !== undefined && authorization !== picky.authorization) {
      return json(401, { error: { message: `Incorrect API key provided: ${authorization ?? 'none'}` } });
    }
    if (path === `${base}/health`) return json(picky.health ?? 200, {});
    if (path === `${base}/v1/models`) {
      return picky.models === null ? json(404, {}) : json(200, { data: (picky.models ?? ['m']).map((id) => ({ id })) });
    }
    if (path === `${base}/metrics` && picky.metrics) {
      return response.writeHead(200, { 'content-type': 'text/plain' }).end(picky.metrics);
    }
    if (!path.startsWith(base) || !path.endsWith('/completions')) return json(404, { detail: 'Not Found' });
    nth += 1;
    if (picky.instead?.(response, nth, request)) return undefined;
    return complete(picky, body, response, json);
  };
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    response.on('error', () => {});
    handle(request, response).catch((error: unknown) => response.destroy(error as Error));
  };
  const server = picky.tls ? createHttps(picky.tls, listener) : createHttp(listener);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${picky.tls ? 'https' : 'http'}://localhost:${port}${picky.base ?? ''}`,
    port,
    requests: seen,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

/** Ids as they are; of a text its words, and three more for the template of a chat. */
function countedTokens({ prompt, messages }: Record<string, unknown>): number {
  const words = (text: unknown): number => String(text).split(' ').length;
  if (Array.isArray(messages)) {
    return messages.reduce((sum: number, message: { content: unknown }) => sum + words(message.content), 3);
  }
  return Array.isArray(prompt) ? prompt.length : words(prompt);
}

async function complete(
  picky: Picky,
  body: Record<string, unknown>,
  response: ServerResponse,
  json: (status: number, value: unknown) => unknown,
): Promise<unknown> {
  const { returnsIds = true, usage = 'end' } = picky;
  const named = picky.refuses?.find((name) => name in body);
  if (named !== undefined) return json(400, { error: { message: `Unrecognized request argument supplied: ${named}` } });
  if (picky.refusesSilently?.some((name) => name in body))
    return json(422, { detail: 'Extra inputs are not permitted' });
  const { prompt } = body;
  if (picky.takesIds === false && typeof prompt !== 'string') return json(400, { detail: 'prompt must be a string.' });
  const promptTokens = countedTokens(body) + (picky.extraPromptTokens ?? 0);
  const wanted = Number(body['max_tokens']);
  const tokens = picky.ignoresEos === false ? Math.max(1, wanted - 3) : wanted;
  const options = (body['stream_options'] ?? {}) as Record<string, unknown>;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const counts = (n: number) => ({ prompt_tokens: promptTokens, completion_tokens: n, total_tokens: promptTokens + n });
  for (let n = 1; n <= tokens; n++) {
    const reason = n < tokens ? null : tokens < wanted ? 'stop' : 'length';
    const ids = returnsIds && body['return_token_ids'] === true ? { token_ids: [100 + n] } : {};
    const continuous = usage === 'continuous' && options['continuous_usage_stats'] === true ? { usage: counts(n) } : {};
    const said = 'messages' in body ? { delta: { content: ` t${n}` } } : { text: ` t${n}` };
    const choices = [{ index: 0, ...said, finish_reason: reason, ...ids }];
    response.write(`data: ${JSON.stringify({ choices, ...continuous })}\n\n`);
    await sleep(2);
  }
  if (usage !== 'none' && options['include_usage'] === true) {
    response.write(`data: ${JSON.stringify({ choices: [], usage: counts(tokens) })}\n\n`);
  }
  return response.end('data: [DONE]\n\n');
}
