// What does one event of an OpenAI-style stream say? Content or not, token ids, usage, finish reason, error.

/** What an event says, before the request's history decides whether it is content. */
export type StreamEvent =
  | { readonly kind: 'done' }
  | { readonly kind: 'error'; readonly text: string }
  | { readonly kind: 'malformed'; readonly text: string }
  /** Pings, foreign events, JSON that is no object. */
  | { readonly kind: 'ignored' }
  | StreamChunk;

export interface StreamChunk {
  readonly kind: 'chunk';
  /** Some choice has a non-empty text of any kind. */
  readonly hasText: boolean;
  /** Some choice has text for the reader, not reasoning or a tool call alone. */
  readonly hasVisible: boolean;
  /** The visible text: `text`, `delta.content`, and in their absence reasoning. */
  readonly text: string;
  /** Token ids over all choices. */
  readonly ids: number;
  /** At least one choice is there, so that growth of usage can make it content. */
  readonly hasChoice: boolean;
  readonly finishReason: string | null;
  /** `usage.completion_tokens`, null without usage. */
  readonly completionTokens: number | null;
  readonly promptTokens: number | null;
  /** `usage.prompt_tokens_details.cached_tokens`, null where usage does not tell. */
  readonly cachedTokens: number | null;
}

type Fields = Readonly<Record<string, unknown>>;

const DONE = '[DONE]';
const IGNORED = { kind: 'ignored' } as const;
const ERROR_TEXT_LIMIT = 4096;

/**
 * Reads one complete event. Only unnamed events and `message` carry chunks, `error` is an error whatever its data, other
 * names are ignored without a look at their data.
 */
export function readEvent(name: string, data: string): StreamEvent {
  if (name === 'error') return { kind: 'error', text: clip(data) };
  if (name !== '' && name !== 'message') return IGNORED;
  const trimmed = data.trim();
  if (trimmed === '') return IGNORED;
  if (trimmed === DONE) return { kind: 'done' };
  const value = parse(trimmed);
  if (value === undefined) return { kind: 'malformed', text: clip(trimmed) };
  if (!isFields(value)) return IGNORED;
  if (isErrorObject(value)) return { kind: 'error', text: clip(trimmed) };
  return readChunk(value);
}

/** True for an object with a member `error` that is not null, or whose `object` is "error". */
export function isErrorObject(value: unknown): boolean {
  return isFields(value) && ((value['error'] ?? null) !== null || value['object'] === 'error');
}

/** JSON text as a value, undefined when it is none. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Error texts are kept up to this many characters. */
export const clip = (text: string): string => text.slice(0, ERROR_TEXT_LIMIT);

function readChunk(value: Fields): StreamChunk {
  const choices = Array.isArray(value['choices']) ? value['choices'].filter(isFields) : [];
  const usage = isFields(value['usage']) ? value['usage'] : null;
  let hasText = false;
  let hasVisible = false;
  let text = '';
  let ids = 0;
  let finishReason: string | null = null;
  for (const choice of choices) {
    const delta = isFields(choice['delta']) ? choice['delta'] : {};
    const visible = stringOf(choice['text']) || stringOf(delta['content']);
    const reasoning = stringOf(delta['reasoning']) || stringOf(delta['reasoning_content']);
    hasText ||= visible !== '' || reasoning !== '' || stringOf(delta['refusal']) !== '' || hasArguments(delta);
    hasVisible ||= visible !== '' || stringOf(delta['refusal']) !== '';
    text += visible || reasoning;
    ids += lengthOf(choice['token_ids']);
    if (typeof choice['finish_reason'] === 'string') finishReason = choice['finish_reason'];
  }
  return {
    kind: 'chunk',
    hasText,
    hasVisible,
    text,
    ids,
    hasChoice: choices.length > 0,
    finishReason,
    completionTokens: usage === null ? null : countOf(usage['completion_tokens']),
    promptTokens: usage === null ? null : countOf(usage['prompt_tokens']),
    cachedTokens: usage === null ? null : cachedTokensOf(usage),
  };
}

function cachedTokensOf(usage: Fields): number | null {
  const details = usage['prompt_tokens_details'];
  return isFields(details) ? countOf(details['cached_tokens']) : null;
}

function hasArguments(delta: Fields): boolean {
  const calls = delta['tool_calls'];
  return (
    Array.isArray(calls) &&
    calls.some((call) => isFields(call) && isFields(call['function']) && stringOf(call['function']['arguments']) !== '')
  );
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0);
const countOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
