// Plays one case: the scripted server in its own process on one side, the load generator's own client on the other.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type Dialect, flagsOf, NS_PER_MS, type Outcome, type TokenSource } from '../../src/core/index.ts';
import { requestBuilder } from '../../src/loadgen/body.ts';
import { LoadClient } from '../../src/loadgen/client.ts';
import type { FinishedRequest } from '../../src/loadgen/finished.ts';
import type { StreamCase } from './case.ts';
import type { Script } from './scripted-server.ts';

/** What the client says about a case, under the names of `expect`. */
export interface Observed {
  readonly outcome: Outcome;
  readonly outputTokens: number;
  readonly tokensFrom: TokenSource | null;
  readonly promptTokens: number | null;
  readonly contentEvents: number;
  readonly firstTokenMs: number | null;
  readonly lastTokenMs: number | null;
  readonly finishReason: string | null;
  readonly text: string;
  readonly errorText: string | null;
  readonly flags: readonly string[];
}

/** Beyond the case's own timeout, before the client is said to hang. */
const HANG_MS = 10_000;
const FIRST_ID = 1000;
const CHAT_WORDS = 3;

export class ScriptedServer {
  readonly #child: ChildProcess = fork(join(import.meta.dirname, 'scripted-server.ts'), { serialization: 'json' });
  readonly #ended: Promise<never>;
  #answer = Promise.withResolvers<number>();

  constructor() {
    this.#child.on('message', (message: { port: number }) => this.#answer.resolve(message.port));
    this.#ended = once(this.#child, 'exit').then(() => Promise.reject(new Error('the scripted server ended')));
    this.#ended.catch(() => {});
  }

  /** Port on which the script is played to the first whole request. */
  async play(script: Script): Promise<number> {
    this.#answer = Promise.withResolvers();
    this.#child.send(script);
    return Promise.race([this.#answer.promise, this.#ended]);
  }

  stop(): void {
    this.#child.disconnect();
  }
}

/** @throws Error when the request is never reported as terminal. */
export async function playCase(server: ScriptedServer, { request, ...played }: StreamCase): Promise<Observed> {
  const writes = played.writes.map(({ afterMs, bytes }) => ({ afterMs, base64: bytes.toString('base64') }));
  const port = await server.play({ writes, ending: played.ending });
  const target = { address: '127.0.0.1', port };
  const originNs = process.hrtime.bigint();
  const finished = Promise.withResolvers<Observed>();
  const client = new LoadClient({
    target,
    sockets: 1,
    now: () => Number(process.hrtime.bigint() - originNs),
    totalTimeoutMs: played.timeoutMs,
    idleTimeoutMs: 60_000,
    keepText: true,
    onFinished: ({ result, log }) => finished.resolve(observed(result!, log.texts ?? [])),
  });
  const hang = setTimeout(
    () => finished.reject(new Error(`no outcome within ${played.timeoutMs + HANG_MS} ms`)),
    played.timeoutMs + HANG_MS,
  );
  try {
    await client.warm();
    const chat = request.endpoint === 'chat';
    const prompt = Int32Array.from({ length: chat ? CHAT_WORDS : request.promptTokens }, (_, i) => FIRST_ID + i);
    const build = requestBuilder({ host: target.address, port }, dialectOf(request.endpoint, request.ignoreEos));
    const job = {
      index: 0,
      scheduledNs: 0,
      requestedTokens: request.maxTokens,
      promptTokensSent: chat ? null : prompt.length,
      ignoreEos: request.ignoreEos,
    };
    client.send(job, build({ id: 'case-0', prompt, maxTokens: request.maxTokens }));
    return await finished.promise;
  } finally {
    clearTimeout(hang);
    client.close();
  }
}

function dialectOf(endpoint: 'completions' | 'chat', ignoreEos: boolean): Dialect {
  return {
    endpoint,
    path: endpoint === 'chat' ? '/v1/chat/completions' : '/v1/completions',
    headers: {},
    fields: { model: 'bench', ignore_eos: ignoreEos, stream_options: { include_usage: true } },
  };
}

function observed(result: FinishedRequest, texts: readonly string[]): Observed {
  const { eventTokens: tokens, eventAtNs, dispatchedNs } = result;
  const sinceDispatchMs = (event: number) =>
    event === -1 || dispatchedNs === null ? null : (eventAtNs[event]! - dispatchedNs) / NS_PER_MS;
  return {
    outcome: result.outcome,
    outputTokens: result.outputTokens,
    tokensFrom: result.tokensFrom,
    promptTokens: result.promptTokensReported,
    contentEvents: eventAtNs.length,
    firstTokenMs: sinceDispatchMs(tokens.findIndex((count) => count > 0)),
    lastTokenMs: sinceDispatchMs(tokens.findLastIndex((count) => count > 0)),
    finishReason: result.finishReason,
    text: texts.join(''),
    errorText: result.errorText,
    flags: flagsOf(result.flags),
  };
}
