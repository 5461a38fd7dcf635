// What a client asked for, checked as vLLM checks it: the request to run, or the error to answer with.

import { tokenize } from './tokens.ts';

export interface GenerationRequest {
  readonly kind: 'completion' | 'chat';
  readonly id: string;
  /** The X-Request-Id header, empty without one. */
  readonly requestId: string;
  readonly model: string;
  readonly promptTokens: readonly number[];
  readonly maxTokens: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly continuousUsage: boolean;
  readonly returnTokenIds: boolean;
  readonly createdS: number;
  /** Set for an id outside the vocabulary: a stream says so inside a 200, as vLLM does. */
  readonly outOfVocabulary: number | null;
}

export interface ApiError {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  readonly param: string | null;
}

export interface RequestRules {
  readonly servedName: string;
  readonly maxModelLen: number;
  readonly vocabulary: readonly [number, number];
}

export interface RequestFacts {
  readonly kind: 'completion' | 'chat';
  readonly requestId: string;
  readonly fallbackId: string;
  readonly createdS: number;
}

type Body = Readonly<Record<string, unknown>>;

class Rejected extends Error {
  readonly error: ApiError;
  constructor(error: ApiError) {
    super(error.message);
    this.error = error;
  }
}

function reject(message: string, param: string | null = null, status = 400, type = 'BadRequestError'): never {
  throw new Rejected({ status, type, message, param });
}

function parseBody(text: string): Body {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    const message =
      "1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.0', 'msg': 'JSON decode error', 'input': '<dict of 0 items>'}";
    return reject(message, 'body.0', 400, 'Bad Request');
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return reject(
      "1 validation error:\n  {'type': 'model_attributes_type', 'loc': 'body'}",
      'body',
      400,
      'Bad Request',
    );
  }
  return body as Body;
}

function isIds(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((id) => Number.isInteger(id));
}

function promptOf(kind: RequestFacts['kind'], body: Body, vocabulary: RequestRules['vocabulary']): readonly number[] {
  if (kind === 'chat') return chatPrompt(body['messages'], vocabulary);
  const prompt = body['prompt'];
  if (typeof prompt === 'string') return tokenize(prompt, vocabulary);
  if (isIds(prompt)) return prompt;
  if (Array.isArray(prompt) && prompt.length === 1) return promptOf(kind, { prompt: prompt[0] }, vocabulary);
  return reject('prompt must be a text or a list of token ids; the mock engine takes one prompt per request', 'prompt');
}

function chatPrompt(messages: unknown, vocabulary: RequestRules['vocabulary']): number[] {
  if (!Array.isArray(messages) || messages.length === 0) return reject('messages must be a non-empty list', 'messages');
  const texts = messages.map((message: unknown) => {
    const content = (message as Body | null)?.['content'];
    return typeof content === 'string' ? content : reject('message content must be a text', 'messages');
  });
  return tokenize(texts.join(' '), vocabulary);
}

function maxTokensOf(kind: RequestFacts['kind'], body: Body, room: number): number {
  const fallback = kind === 'chat' ? room : 16;
  const value = body['max_tokens'] ?? body['max_completion_tokens'] ?? fallback;
  if (!Number.isInteger(value) || (value as number) < 1) {
    return reject(`max_tokens must be at least 1, got ${String(value)}.`, 'max_tokens');
  }
  return value as number;
}

function checkLength(inputTokens: number, maxTokens: number, maxModelLen: number): void {
  const limit = `This model's maximum context length is ${maxModelLen} tokens. However, `;
  const shorten = `Please reduce the length of the input prompt. (parameter=input_tokens, value=${inputTokens})`;
  if (inputTokens >= maxModelLen) {
    const text = `your prompt contains ${inputTokens} input tokens, which exceeds this limit even without any output tokens. `;
    reject(limit + text + shorten, 'input_tokens');
  }
  if (inputTokens + maxTokens > maxModelLen) {
    const text = `you requested ${maxTokens} output tokens and your prompt contains ${inputTokens} input tokens, `;
    const total = `for a total of ${inputTokens + maxTokens} tokens. Please reduce the length of the input prompt or the number of requested output tokens. `;
    reject(`${limit}${text}${total}(parameter=input_tokens, value=${inputTokens})`, 'input_tokens');
  }
}

function checkModel(body: Body, servedName: string): void {
  const model = body['model'];
  if (model === undefined || model === null || model === servedName) return;
  const message = `The model \`${String(model)}\` does not exist. Valid aliases: ${servedName}.`;
  reject(message, 'model', 404, 'NotFoundError');
}

function build(text: string, facts: RequestFacts, rules: RequestRules): GenerationRequest {
  const body = parseBody(text);
  checkModel(body, rules.servedName);
  const promptTokens = promptOf(facts.kind, body, rules.vocabulary);
  if (promptTokens.length === 0) reject('Either prompt or prompt_embeds must be provided and non-empty.', 'prompt');
  const maxTokens = maxTokensOf(facts.kind, body, rules.maxModelLen - promptTokens.length);
  checkLength(promptTokens.length, maxTokens, rules.maxModelLen);
  if (((body['min_tokens'] as number | undefined) ?? 0) > maxTokens) {
    reject(`min_tokens must be less than or equal to max_tokens=${maxTokens}, got ${String(body['min_tokens'])}.`);
  }
  if ((body['n'] ?? 1) !== 1) reject('the mock engine answers with one choice: n must be 1', 'n');
  const stream = body['stream'] === true;
  const usage = body['stream_options'] as Body | null | undefined;
  if (usage && !stream) reject('Stream options can only be defined when `stream=True`.', 'stream_options');
  const includeUsage = usage?.['include_usage'] === true;
  return {
    kind: facts.kind,
    id: `${facts.kind === 'chat' ? 'chatcmpl' : 'cmpl'}-${facts.requestId || facts.fallbackId}`,
    requestId: facts.requestId,
    model: rules.servedName,
    promptTokens,
    maxTokens,
    stream,
    includeUsage,
    continuousUsage: includeUsage && usage?.['continuous_usage_stats'] === true,
    returnTokenIds: body['return_token_ids'] === true,
    createdS: facts.createdS,
    outOfVocabulary: promptTokens.find((id) => id < 0 || id >= rules.vocabulary[1]) ?? null,
  };
}

/** Reads a request body. Never throws: what is wrong comes back as the error to send. */
export function readGenerationRequest(
  text: string,
  facts: RequestFacts,
  rules: RequestRules,
): { readonly request: GenerationRequest } | { readonly error: ApiError } {
  try {
    return { request: build(text, facts, rules) };
  } catch (thrown) {
    if (thrown instanceof Rejected) return { error: thrown.error };
    throw thrown;
  }
}
