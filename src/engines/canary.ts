// One real completion before anything is measured: it must come back with exactly the tokens that were sent and asked.

import { type Dialect, EngineError } from '../core/index.ts';
import type { Canary } from './engine.ts';

/** Tokens asked of the canary, fewer when the context has no room for them. */
export const CANARY_TOKENS = 4;

export interface CanaryAnswer {
  readonly promptTokens: number | null;
  readonly outputTokens: number | null;
  /** Ids that the stream carried; null when it carried none. */
  readonly idTokens: number | null;
  readonly finishReason: string | null;
  /** Text of an error object inside the answer, whatever the status said. */
  readonly error: string | null;
}

/** The body of the canary: exactly what a measured request sends, so that the dialect itself is proven. */
export function canaryBody(dialect: Dialect, prompt: readonly number[], maxTokens: number): Record<string, unknown> {
  return { ...dialect.fields, prompt, max_tokens: maxTokens };
}

export const asRecord = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
const asCount = (value: unknown): number | null => (typeof value === 'number' ? value : null);

/** Every JSON object of a plain or streamed answer, in order. */
export function messagesOf(text: string): Record<string, unknown>[] {
  const bodies = text.trimStart().startsWith('{')
    ? [text]
    : text.split(/\r\n|\r|\n/).flatMap((line) => (line.startsWith('data:') ? [line.slice(5).trim()] : []));
  return bodies.flatMap((body) => {
    try {
      return [asRecord(JSON.parse(body))];
    } catch {
      return [];
    }
  });
}

/** The text of an error object, whatever its form; null without one. */
export function errorOf(message: Record<string, unknown>): string | null {
  const error = message['error'];
  if (error === undefined || error === null) return null;
  return typeof error === 'string' ? error : String(asRecord(error)['message'] ?? JSON.stringify(error));
}

/** Reads a streamed or plain completion that was received whole. */
export function readCanary(text: string): CanaryAnswer {
  let answer: CanaryAnswer = {
    promptTokens: null,
    outputTokens: null,
    idTokens: null,
    finishReason: null,
    error: null,
  };
  for (const message of messagesOf(text)) {
    const usage = asRecord(message['usage']);
    const choices = message['choices'];
    const choice = asRecord(Array.isArray(choices) ? choices[0] : null);
    const ids = choice['token_ids'];
    answer = {
      promptTokens: asCount(usage['prompt_tokens']) ?? answer.promptTokens,
      outputTokens: asCount(usage['completion_tokens']) ?? answer.outputTokens,
      idTokens: Array.isArray(ids) ? (answer.idTokens ?? 0) + ids.length : answer.idTokens,
      finishReason: typeof choice['finish_reason'] === 'string' ? choice['finish_reason'] : answer.finishReason,
      error: answer.error ?? errorOf(message),
    };
  }
  return answer;
}

function refuse(code: string, message: string, advice: string, details: Record<string, unknown>): never {
  throw new EngineError(code, message, { advice, details });
}

/**
 * Accepts the canary or says what is wrong with it. Exact counts are the point: a server that adds a token to the
 * prompt, or ends early although EOS is ignored, would make every later figure wrong by that much.
 * @throws EngineError `canary_failed` or `canary_mismatch`
 */
export function judgeCanary(
  reply: { readonly status: number; readonly text: string },
  asked: { readonly promptTokens: number; readonly outputTokens: number },
  elapsedMs: number,
): Canary {
  const answer = readCanary(reply.text);
  const details = { status: reply.status, asked, answer };
  if (reply.status !== 200 || answer.error !== null) {
    const said = (answer.error ?? reply.text.trim()).slice(0, 300) || 'nothing';
    const advice =
      'The server refuses what the load would send. Check model.tokenIds, model.maxModelLen and the lengths of the loads.';
    refuse('canary_failed', `the canary completion failed (HTTP ${reply.status}): ${said}`, advice, details);
  }
  if (answer.promptTokens !== asked.promptTokens) {
    const advice =
      'Prompts are sent as token ids and must be counted as such. Check that the server takes ids verbatim, without adding a BOS token.';
    const message = `the canary sent ${asked.promptTokens} prompt tokens, the server counted ${answer.promptTokens ?? 'none'}`;
    refuse('canary_mismatch', message, advice, details);
  }
  const idsDiffer = answer.idTokens !== null && answer.idTokens !== asked.outputTokens;
  if (answer.outputTokens !== asked.outputTokens || idsDiffer || answer.finishReason !== 'length') {
    const ids = answer.idTokens === null ? '' : ` (${answer.idTokens} ids)`;
    const message = `the canary asked for ${asked.outputTokens} tokens with EOS ignored, the server reported ${answer.outputTokens ?? 'none'}${ids}, finish reason ${answer.finishReason ?? 'none'}`;
    const advice =
      'Output lengths must be exact. Check that the server honours ignore_eos and that the model has no stop ids of its own.';
    refuse('canary_mismatch', message, advice, details);
  }
  return { promptTokens: asked.promptTokens, outputTokens: asked.outputTokens, elapsedMs };
}
