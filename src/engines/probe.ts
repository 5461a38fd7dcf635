// Asks a server things that are not timed: health, models, metrics, the canary. No retries, no redirects, hard timeouts.

import { Agent, request } from 'undici';
import { type EngineEndpoint, hostInUrl, messageOf } from '../core/index.ts';

export interface ProbeReply {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
  /** Where a 3xx points to. */
  readonly location?: string;
}

/**
 * Why no reply came: `refused` (nobody listens), `timeout`, `aborted`, `certificate` (not trusted), or `broken` (anything
 * else on the way).
 */
export interface ProbeFailure {
  readonly status: null;
  readonly reason: 'refused' | 'timeout' | 'aborted' | 'certificate' | 'broken';
  readonly message: string;
}

export type ProbeResult = ProbeReply | ProbeFailure;

export interface AskOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

export const baseUrl = ({ host, port, tls }: EngineEndpoint): string =>
  `${tls ? 'https' : 'http'}://${hostInUrl(host)}:${port}`;

/** Codes of OpenSSL's verification and of Node's comparison of the name. */
const CERTIFICATE = /^(CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_|HOSTNAME_MISMATCH|ERR_TLS_CERT_)/;

function failureOf(error: unknown, timeout: AbortSignal, caller: AbortSignal | undefined): ProbeFailure {
  const message = messageOf(error);
  if (caller?.aborted) return { status: null, reason: 'aborted', message: 'stopped by the caller' };
  const code = (error as { code?: unknown } | null)?.code;
  if (timeout.aborted || code === 'UND_ERR_CONNECT_TIMEOUT') return { status: null, reason: 'timeout', message };
  if (typeof code === 'string' && CERTIFICATE.test(code)) return { status: null, reason: 'certificate', message };
  return { status: null, reason: code === 'ECONNREFUSED' ? 'refused' : 'broken', message };
}

/** Every answer is a value: a server that does not answer is an observation here, not an exception. */
export class Probe {
  readonly endpoint: EngineEndpoint;
  readonly #agent: Agent;
  readonly #headers: Readonly<Record<string, string>>;

  /** @param headers of every request, credentials for example */
  constructor(endpoint: EngineEndpoint, headers: Readonly<Record<string, string>> = {}) {
    this.endpoint = endpoint;
    this.#headers = headers;
    const { tls } = endpoint;
    this.#agent = new Agent({
      keepAliveTimeout: 1500,
      keepAliveMaxTimeout: 1500,
      headersTimeout: 0,
      bodyTimeout: 0,
      ...(tls ? { connect: { rejectUnauthorized: !tls.insecure, ...(tls.ca === null ? {} : { ca: tls.ca }) } } : {}),
    });
  }

  get(path: string, options: AskOptions): Promise<ProbeResult> {
    return this.#ask('GET', path, undefined, options);
  }

  post(path: string, body: unknown, options: AskOptions): Promise<ProbeResult> {
    return this.#ask('POST', path, JSON.stringify(body), options);
  }

  /** Posts and reads only as far as the status when that is 200: the answer is broken off. */
  async begin(path: string, body: unknown, options: AskOptions): Promise<ProbeResult> {
    return this.#ask('POST', path, JSON.stringify(body), options, true);
  }

  async #ask(
    method: 'GET' | 'POST',
    path: string,
    body: string | undefined,
    options: AskOptions,
    statusOnly = false,
  ): Promise<ProbeResult> {
    const timeout = AbortSignal.timeout(Math.max(1, Math.round(options.timeoutMs)));
    const signal = options.signal ? AbortSignal.any([timeout, options.signal]) : timeout;
    try {
      const reply = await request(`${baseUrl(this.endpoint)}${path}`, {
        method,
        dispatcher: this.#agent,
        signal,
        headers: {
          accept: '*/*',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...this.#headers,
          ...options.headers,
        },
        ...(body === undefined ? {} : { body }),
      });
      const contentType = String(reply.headers['content-type'] ?? '');
      const { location } = reply.headers;
      if (statusOnly && reply.statusCode === 200) {
        reply.body.on('error', () => {}).destroy();
        return { status: 200, contentType, text: '' };
      }
      return {
        status: reply.statusCode,
        contentType,
        text: await reply.body.text(),
        ...(location === undefined ? {} : { location: String(location) }),
      };
    } catch (error) {
      return failureOf(error, timeout, options.signal);
    }
  }

  /** Closes every connection at once, answered or not. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** The parsed body; null when it is not JSON. */
export function jsonOf(reply: ProbeReply): unknown {
  try {
    return JSON.parse(reply.text);
  } catch {
    return null;
  }
}
