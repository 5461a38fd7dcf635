// The JSON of each stream event and of a whole answer, field for field as vLLM 0.32 writes it.

import type { ApiError, GenerationRequest } from './generation-request.ts';
import { tokenText } from './tokens.ts';

/** Says in every answer that no model was behind it. */
export const FINGERPRINT = 'mock-engine-simulated';

export const DONE_EVENT = 'data: [DONE]\n\n';

const event = (body: unknown): string => `data: ${JSON.stringify(body)}\n\n`;

function usageOf(request: GenerationRequest, outputTokens: number) {
  const prompt = request.promptTokens.length;
  return { prompt_tokens: prompt, total_tokens: prompt + outputTokens, completion_tokens: outputTokens };
}

function head({ kind, id, createdS, model }: GenerationRequest, chunk: boolean) {
  const object = kind === 'completion' ? 'text_completion' : `chat.completion${chunk ? '.chunk' : ''}`;
  return { id, object, created: createdS, model };
}

/** Event of token `index` (from 0); a chat's first one brings the role event along. */
export function tokenEvent(request: GenerationRequest, index: number, token: number, last: boolean): string {
  const usage = request.continuousUsage ? { usage: usageOf(request, index + 1) } : {};
  const finish = last ? 'length' : null;
  const ids = request.returnTokenIds ? [token] : null;
  const promptIds = request.returnTokenIds && index === 0 ? request.promptTokens : null;
  if (request.kind === 'completion') {
    const choice = {
      index: 0,
      text: tokenText(token),
      logprobs: null,
      finish_reason: finish,
      stop_reason: null,
      prompt_token_ids: promptIds,
      token_ids: ids,
    };
    return event({ ...head(request, true), choices: [choice], ...usage });
  }
  const choice = {
    index: 0,
    delta: { content: tokenText(token) },
    logprobs: null,
    finish_reason: finish,
    ...(last ? { stop_reason: null } : {}),
    token_ids: ids,
  };
  const content = event({ ...head(request, true), choices: [choice], ...usage });
  return index === 0 ? roleEvent(request, promptIds) + content : content;
}

function roleEvent(request: GenerationRequest, promptIds: readonly number[] | null): string {
  const choice = { index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null };
  const usage = request.continuousUsage ? { usage: usageOf(request, 0) } : {};
  return event({
    ...head(request, true),
    choices: [choice],
    prompt_token_ids: promptIds,
    prompt_text: null,
    ...usage,
  });
}

export function usageEvent(request: GenerationRequest, outputTokens: number, cachedTokens: number): string {
  const usage = { ...usageOf(request, outputTokens), prompt_tokens_details: { cached_tokens: cachedTokens } };
  return event({ ...head(request, true), choices: [], usage, system_fingerprint: FINGERPRINT });
}

/** With the spaces after colon and comma that Python's json writes here. */
export function errorEvent(error: ApiError): string {
  const json = JSON.stringify(errorBody(error), null, 1).replace(/\n\s*/g, ' ');
  return `data: ${json.replaceAll('{ ', '{').replaceAll(' }', '}')}\n\n`;
}

export function errorBody({ message, type, param, status }: ApiError) {
  return { error: { message, type, param, code: status } };
}

/** A whole answer without streaming. */
export function answerBody(request: GenerationRequest, tokens: readonly number[], cachedTokens: number) {
  const text = tokens.map(tokenText).join('');
  const ids = request.returnTokenIds ? { token_ids: tokens } : { token_ids: null };
  const usage = {
    ...usageOf(request, tokens.length),
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
  const finish = { logprobs: null, finish_reason: 'length', stop_reason: null, ...ids };
  const choice =
    request.kind === 'completion'
      ? { index: 0, text, ...finish, prompt_token_ids: request.returnTokenIds ? request.promptTokens : null }
      : { index: 0, message: { role: 'assistant', content: text }, ...finish };
  return { ...head(request, false), choices: [choice], system_fingerprint: FINGERPRINT, usage };
}
