// What does a server that we know nothing of take and tell? Found out with real completions before the load, field by
// field, so that nothing about it has to be guessed.

import { type Dialect, EngineError } from '../core/index.ts';
import { asRecord, errorOf, messagesOf } from './canary.ts';
import type { Probe, ProbeReply, ProbeResult } from './probe.ts';

const PROBE_TOKENS = 8;

/** What one canary showed. Null: the server did not tell, or it could not be seen. */
export interface Capabilities {
  readonly promptsAs: 'ids' | 'text';
  readonly promptTokensReported: boolean;
  /** The server counted exactly the tokens that were sent; null where it counts none or only text was sent. */
  readonly promptTokensExact: boolean | null;
  readonly tokenIds: boolean;
  readonly usage: boolean;
  /** Usage came with the tokens, not only at the end. */
  readonly continuousUsage: boolean;
  readonly finishReason: string | null;
  /** The answer had exactly the length asked for, EOS ignored; null where nothing counts it. */
  readonly exactLength: boolean | null;
  readonly doneMarker: boolean;
  /** Fields that the server refuses: they are left out of every request. */
  readonly droppedFields: readonly string[];
}

export interface Discovery {
  readonly dialect: Dialect;
  readonly capabilities: Capabilities;
  readonly promptTokens: number | null;
  readonly outputTokens: number | null;
}

export interface DiscoveryInput {
  readonly probe: Probe;
  /** With every field that we would like to send. */
  readonly dialect: Dialect;
  readonly promptIds: readonly number[];
  /** The same prompt as text; null without a tokenizer. */
  readonly promptText: string | null;
  /** The longest request of the loads: whether the model has room for it is asked too. */
  readonly longest: { readonly promptIds: readonly number[]; readonly outputTokens: number };
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Takes secrets out of what the server says. */
  readonly clean: (text: string) => string;
}

/** Not part of the common API: servers that check their input strictly refuse them. */
const OPTIONAL: readonly string[] = ['return_token_ids', 'ignore_eos', 'stream_options', 'top_p', 'temperature'];
const BEYOND_THE_STANDARD: readonly string[] = ['return_token_ids', 'ignore_eos'];

/**
 * Tries ids first, then text; drops the optional fields that the server refuses by name; asks for continuous usage where
 * no token ids come back.
 * @throws EngineError `unauthorized`, `rate_limited`, `redirected`, `not_an_api`, `not_streaming`, `ids_refused`,
 *   `canary_failed`
 */
export async function discover(input: DiscoveryInput): Promise<Discovery> {
  const found = await firstAccepted(input);
  if (found.promptsAs === 'ids') await requireRoom(input, found.dialect);
  if (found.seen.ids > 0 || !('stream_options' in found.dialect.fields)) return discoveryOf(input, found);
  return discoveryOf(input, (await withContinuousUsage(input, found)) ?? found);
}

interface Accepted {
  readonly dialect: Dialect;
  readonly promptsAs: 'ids' | 'text';
  readonly dropped: readonly string[];
  readonly seen: Seen;
}

interface Seen {
  readonly promptTokens: number | null;
  readonly outputTokens: number | null;
  readonly ids: number;
  /** Events that carry usage while choices still come. */
  readonly usageInStream: number;
  readonly finishReason: string | null;
  readonly done: boolean;
  readonly choices: number;
  readonly error: string | null;
}

async function firstAccepted(input: DiscoveryInput): Promise<Accepted> {
  const chat = input.dialect.endpoint === 'chat';
  const ways = [...(chat ? [] : ['ids' as const]), ...(input.promptText === null ? [] : ['text' as const])];
  if (ways.length === 0) throw needsTokenizer('a chat is text, and there is no tokenizer to make it with');
  let refused: Refusal | null = null;
  for (const promptsAs of ways) {
    const result = await accepted(input, promptsAs);
    if ('seen' in result) return result;
    refused ??= result;
  }
  throw refusalError(input, refused!);
}

interface Refusal {
  readonly reply: ProbeReply;
  readonly said: string;
}

/** One way of sending the prompt, with fewer fields each time the server names one that it does not take. */
async function accepted(input: DiscoveryInput, promptsAs: 'ids' | 'text'): Promise<Accepted | Refusal> {
  let { dialect } = input;
  const dropped: string[] = [];
  for (;;) {
    const reply = await ask(input, dialect, promptsAs);
    const seen = readAnswer(reply.text);
    if (reply.status === 200 && seen.error === null) {
      requireStream(input, reply);
      return { dialect, promptsAs, dropped, seen };
    }
    const said = input.clean(seen.error ?? saidBy(reply));
    const next = reply.status === 400 || reply.status === 422 ? fieldsToDrop(dialect, said, dropped) : [];
    if (next.length === 0) return { reply, said };
    dropped.push(...next);
    dialect = without(dialect, next);
  }
}

/** Those that the message names; where it names none, once, those beyond the standard. */
function fieldsToDrop(dialect: Dialect, said: string, dropped: readonly string[]): readonly string[] {
  const present = OPTIONAL.filter((name) => name in dialect.fields);
  const named = present.filter((name) => said.includes(name));
  if (named.length > 0 || dropped.length > 0) return named;
  return /prompt|token id|vocab|model|context/i.test(said)
    ? []
    : BEYOND_THE_STANDARD.filter((name) => present.includes(name));
}

const without = (dialect: Dialect, names: readonly string[]): Dialect => ({
  ...dialect,
  fields: Object.fromEntries(Object.entries(dialect.fields).filter(([name]) => !names.includes(name))),
});

async function withContinuousUsage(input: DiscoveryInput, found: Accepted): Promise<Accepted | null> {
  const fields = {
    ...found.dialect.fields,
    stream_options: { ...asRecord(found.dialect.fields['stream_options']), continuous_usage_stats: true },
  };
  const dialect = { ...found.dialect, fields };
  const reply = await ask(input, dialect, found.promptsAs);
  const seen = readAnswer(reply.text);
  return reply.status === 200 && seen.error === null && seen.usageInStream > 1 ? { ...found, dialect, seen } : null;
}

async function ask(input: DiscoveryInput, dialect: Dialect, promptsAs: 'ids' | 'text'): Promise<ProbeReply> {
  const { probe, promptIds, promptText, timeoutMs, signal } = input;
  const prompt = promptsAs === 'ids' ? [...promptIds] : promptText;
  const asked = dialect.endpoint === 'chat' ? { messages: [{ role: 'user', content: prompt }] } : { prompt };
  const body = { ...dialect.fields, ...asked, max_tokens: PROBE_TOKENS };
  const reply = await probe.post(dialect.path, body, { timeoutMs, signal });
  signal.throwIfAborted();
  if (reply.status === null) throw noReply(input, reply);
  return reply;
}

/** The longest request is begun and broken off with its status: one that does not fit fails here, not a thousand times. */
async function requireRoom(input: DiscoveryInput, dialect: Dialect): Promise<void> {
  const { probe, longest, timeoutMs, signal } = input;
  const body = { ...dialect.fields, prompt: [...longest.promptIds], max_tokens: longest.outputTokens };
  const reply = await probe.begin(dialect.path, body, { timeoutMs, signal });
  signal.throwIfAborted();
  if (reply.status === null) throw noReply(input, reply);
  if (reply.status === 200) return;
  throw refusalError(input, { reply, said: input.clean(errorIn(reply) ?? saidBy(reply)) });
}

const errorIn = (reply: ProbeReply): string | null => readAnswer(reply.text).error;

function readAnswer(text: string): Seen {
  let seen: Seen = {
    promptTokens: null,
    outputTokens: null,
    ids: 0,
    usageInStream: 0,
    finishReason: null,
    done: /^data:\s*\[DONE\]/m.test(text),
    choices: 0,
    error: null,
  };
  for (const message of messagesOf(text)) {
    const usage = asRecord(message['usage']);
    const choices = Array.isArray(message['choices']) ? message['choices'].map(asRecord) : [];
    const hasUsage = typeof usage['completion_tokens'] === 'number';
    const reason = choices.map((choice) => choice['finish_reason']).find((each) => typeof each === 'string');
    const ids = choices.map((choice) => choice['token_ids']).filter(Array.isArray);
    seen = {
      ...seen,
      promptTokens: typeof usage['prompt_tokens'] === 'number' ? usage['prompt_tokens'] : seen.promptTokens,
      outputTokens: hasUsage ? Number(usage['completion_tokens']) : seen.outputTokens,
      ids: seen.ids + ids.reduce((sum, list) => sum + list.length, 0),
      usageInStream: seen.usageInStream + (hasUsage && choices.length > 0 ? 1 : 0),
      finishReason: reason ?? seen.finishReason,
      choices: seen.choices + choices.length,
      error: seen.error ?? errorOf(message),
    };
  }
  return seen;
}

function discoveryOf(input: DiscoveryInput, { dialect, promptsAs, dropped, seen }: Accepted): Discovery {
  const counted = seen.outputTokens ?? (seen.ids > 0 ? seen.ids : null);
  const exactPrompt =
    promptsAs === 'text' || seen.promptTokens === null ? null : seen.promptTokens === input.promptIds.length;
  return {
    dialect,
    promptTokens: seen.promptTokens,
    outputTokens: counted,
    capabilities: {
      promptsAs,
      promptTokensReported: seen.promptTokens !== null,
      promptTokensExact: exactPrompt,
      tokenIds: seen.ids > 0,
      usage: seen.outputTokens !== null,
      continuousUsage: seen.usageInStream > 1,
      finishReason: seen.finishReason,
      exactLength: counted === null ? null : counted === PROBE_TOKENS && seen.finishReason === 'length',
      doneMarker: seen.done,
      droppedFields: dropped,
    },
  };
}

function requireStream(input: DiscoveryInput, reply: ProbeReply): void {
  if (/^text\/event-stream\b/i.test(reply.contentType)) return;
  const kind = reply.contentType.split(';')[0] || 'no content type';
  const isApi = messagesOf(reply.text).some((message) => 'choices' in message);
  if (isApi) {
    throw new EngineError('not_streaming', `the server answered a streaming request in one piece (${kind})`, {
      advice:
        'Without a stream there is no first token to time. Look for a setting of the gateway that buffers answers.',
    });
  }
  throw new EngineError('not_an_api', `${input.dialect.path} answered HTTP 200 with ${kind}: ${quote(input, reply)}`, {
    advice:
      'This is no completion API: a login page or a proxy stands before it. Check --base-url and the credentials.',
  });
}

const quote = (input: DiscoveryInput, reply: ProbeReply): string => `"${input.clean(saidBy(reply))}"`;

/** What a reply says, in one line. */
export function saidBy(reply: ProbeReply): string {
  const message = messagesOf(reply.text)[0];
  const detail = message?.['detail'] ?? message?.['message'];
  const said = message && (errorOf(message) ?? (detail === undefined ? null : textOf(detail)));
  return (said || reply.text.replaceAll(/\s+/g, ' ').trim() || 'nothing').slice(0, 300);
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

function noReply(input: DiscoveryInput, reply: Extract<ProbeResult, { status: null }>): EngineError {
  return new EngineError('canary_failed', `the canary completion got no answer: ${input.clean(reply.message)}`, {
    advice: 'The server accepts connections but does not complete requests. Look at its log.',
  });
}

const needsTokenizer = (why: string): EngineError =>
  new EngineError('ids_refused', why, {
    advice: "Give the model's tokenizer file with --tokenizer, so that prompts can be sent as text of known length.",
  });

function refusalError(input: DiscoveryInput, { reply, said }: Refusal): EngineError {
  const { status } = reply;
  const details = { status, said };
  const path = input.dialect.path;
  if (status === 401 || status === 403) return unauthorized(path, status, said);
  if (status === 429) {
    return new EngineError('rate_limited', `the server refuses even the first request: HTTP 429: ${said}`, {
      advice: 'Wait, or ask for a higher rate limit: a load against a limiter measures the limiter.',
      details,
    });
  }
  if (status >= 300 && status < 400) {
    const where = reply.location === undefined ? 'elsewhere' : `to ${input.clean(reply.location)}`;
    return new EngineError('redirected', `${path} answered HTTP ${status} and points ${where}`, {
      advice: 'Redirects are not followed: a load must meet its server directly. Check --base-url and the credentials.',
      details,
    });
  }
  const refusesIds =
    input.promptText === null && /prompt|string|token/i.test(said) && !/vocab|context|length/i.test(said);
  if ((status === 400 || status === 422) && refusesIds) {
    return needsTokenizer(`the server does not take token ids as a prompt: HTTP ${status}: ${said}`);
  }
  const answered = status === 200 ? 'an error inside its answer' : `HTTP ${status}`;
  return new EngineError('canary_failed', `the server refuses what the load would send: ${answered}: ${said}`, {
    advice: adviceFor(status, said),
    details,
  });
}

function adviceFor(status: number, said: string): string {
  if (/vocab/i.test(said)) return 'Give the range of ids that the model knows with --token-ids LO,HI.';
  if (/context|max_model_len|length/i.test(said))
    return 'Ask for shorter prompts or answers: together they must fit the model.';
  if (status === 404) return 'Check --base-url, --endpoint and --model: the server does not know one of them.';
  if (status >= 500) return 'The server itself failed: look at its log.';
  return 'Check --model and --extra-body against what the server says.';
}

export const unauthorized = (path: string, status: number, said: string): EngineError =>
  new EngineError('unauthorized', `${path} answered HTTP ${status}: ${said}`, {
    advice:
      'Give the key with --api-key-env NAME or --api-key-file PATH, or the header that the gateway wants with --header.',
  });
