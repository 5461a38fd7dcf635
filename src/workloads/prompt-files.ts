// The user's own prompts: JSONL as vLLM, GuideLLM and AIPerf read it, and conversations in the format of ShareGPT.

import { ConfigError, type LoadSpec, REQUESTS_PER_ATTEMPT } from '../core/index.ts';
import { invalidPrompt, jsonLines, jsonList, type PromptRecord } from './prompt-records.ts';
import { jsonInside } from './texts.ts';
import type { PromptTokenizer } from './tokenizer.ts';

export interface FilePrompt {
  /** What is sent as text, escaped for JSON; empty where ids are sent. */
  readonly bytes: Buffer;
  readonly ids: readonly number[];
  /** Counted prompt tokens; null where nobody counted. */
  readonly tokens: number | null;
  /** Null: as many as the load asks for. */
  readonly outputTokens: number | null;
}

export interface FilePrompts {
  readonly form: 'ids' | 'string' | 'messages';
  /** In file order, at least one. */
  readonly items: readonly FilePrompt[];
  /** Conversations that were left out: without two turns, or longer than the load allows. */
  readonly skipped: number;
}

export interface FileReading {
  readonly load: LoadSpec;
  readonly tokenizer: PromptTokenizer | null;
  /** The server takes no token ids, whatever the file has. */
  readonly asText: boolean;
}

/** What one record says, before it is known how all of them are sent. */
interface Spoken {
  readonly line: number;
  readonly text: string | null;
  readonly messages: readonly Message[] | null;
  readonly ids: readonly number[] | null;
  readonly outputTokens: number | null;
}

interface Message {
  readonly role: string;
  readonly content: unknown;
}

/** Text that a load may hold in memory. */
const MAX_FILE_CHARACTERS = 2 ** 29;
const ID_LIMIT = 2 ** 31;

/**
 * Reads the prompts of a load, at most as many as a load can have requests.
 * @throws ConfigError `prompt_file_invalid` with file and line, `prompt_file_empty`, `prompt_file_too_large`, and what
 * jsonLines and jsonList throw.
 */
export async function readPromptFile(reading: FileReading): Promise<FilePrompts> {
  const { prompts } = reading.load;
  if (prompts.kind === 'ids') throw new TypeError('a load of ids has no prompt file');
  const { path } = prompts;
  const records = prompts.kind === 'jsonl' ? jsonLines(path) : jsonList(path);
  const spoken: Spoken[] = [];
  let skipped = 0;
  let characters = 0;
  for await (const record of records) {
    const one = prompts.kind === 'jsonl' ? lineOf(record, path) : conversationOf(record, path, reading);
    if (one === null) {
      skipped += 1;
      continue;
    }
    spoken.push(one);
    characters += record.characters;
    if (characters > MAX_FILE_CHARACTERS) throw tooLarge(path);
    if (spoken.length === REQUESTS_PER_ATTEMPT) break;
  }
  if (spoken.length === 0) throw empty(path, skipped);
  const form = formOf(spoken, path, reading);
  return { form, items: spoken.map((one) => sentAs(form, one, path, reading)), skipped };
}

/** One line of JSONL. Keys that are not known are left alone. */
function lineOf({ line, value }: PromptRecord, path: string): Spoken {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidPrompt(path, line, 'expected an object such as {"prompt": "..."}');
  }
  const record = value as Record<string, unknown>;
  const spoken = {
    line,
    text: textOf(record, path, line),
    messages: messagesOf(record['messages'], path, line),
    ids: idsOf(record['prompt_token_ids'], path, line),
    outputTokens: outputTokensOf(record, path, line),
  };
  if (spoken.text !== null && spoken.messages !== null) throw invalidPrompt(path, line, 'both a prompt and messages');
  if (spoken.text === null && spoken.messages === null && spoken.ids === null) {
    throw invalidPrompt(path, line, 'expected "prompt" or "text", "messages", or "prompt_token_ids"');
  }
  return spoken;
}

function textOf(record: Record<string, unknown>, path: string, line: number): string | null {
  const value = record['prompt'] ?? record['text'] ?? null;
  if (value === null) return null;
  if (typeof value !== 'string' || value === '')
    throw invalidPrompt(path, line, 'the prompt must be a text, not empty');
  return value;
}

function messagesOf(value: unknown, path: string, line: number): readonly Message[] | null {
  if (value === undefined || value === null) return null;
  const wellFormed = (message: unknown): message is Message =>
    typeof message === 'object' && message !== null && typeof (message as Message).role === 'string';
  if (!Array.isArray(value) || value.length === 0 || !value.every(wellFormed)) {
    throw invalidPrompt(path, line, 'messages must be a list of { "role": "...", "content": "..." }');
  }
  return value;
}

function idsOf(value: unknown, path: string, line: number): readonly number[] | null {
  if (value === undefined || value === null) return null;
  const isId = (id: unknown) => Number.isInteger(id) && (id as number) >= 0 && (id as number) < ID_LIMIT;
  if (!Array.isArray(value) || value.length === 0 || !value.every(isId)) {
    throw invalidPrompt(path, line, 'prompt_token_ids must be a list of token ids');
  }
  return value;
}

const OUTPUT_KEYS = ['output_tokens', 'max_tokens', 'output_tokens_count'] as const;

function outputTokensOf(record: Record<string, unknown>, path: string, line: number): number | null {
  const key = OUTPUT_KEYS.find((each) => record[each] !== undefined && record[each] !== null);
  if (key === undefined) return null;
  const value = record[key];
  if (!Number.isSafeInteger(value) || (value as number) < 1) {
    throw invalidPrompt(path, line, `${key} must be a whole number from 1`);
  }
  return value as number;
}

const HUMAN = new Set(['human', 'user']);
const MODEL = new Set(['gpt', 'assistant', 'chatgpt']);

/** The first human turn and the length of the model's first answer; null for a conversation without both. */
function conversationOf({ line, value }: PromptRecord, path: string, reading: FileReading): Spoken | null {
  const turns = (value as { readonly conversations?: unknown } | null)?.conversations;
  if (!Array.isArray(turns)) throw invalidPrompt(path, line, 'expected an object with a list "conversations"');
  const first = (speakers: ReadonlySet<string>) => turns.findIndex((turn) => speakers.has(turn?.from));
  const [asked, answered] = [first(HUMAN), first(MODEL)];
  if (asked === -1 || answered === -1) return null;
  const [question, answer] = [turns[asked].value, turns[answered].value];
  if (typeof question !== 'string' || typeof answer !== 'string') {
    throw invalidPrompt(path, line, 'the value of a turn must be a text');
  }
  if (question.trim() === '' || answer === '') return null;
  const { tokenizer, load } = reading;
  if (tokenizer === null) return { line, text: question, messages: null, ids: null, outputTokens: null };
  const outputTokens = tokenizer.count(answer, false);
  const fits = outputTokens <= load.outputTokens && tokenizer.count(question, true) <= load.promptTokens;
  return fits ? { line, text: question, messages: null, ids: null, outputTokens } : null;
}

/** All requests of a load are of one form: what the server takes and every record can give. */
function formOf(spoken: readonly Spoken[], path: string, { load, asText }: FileReading): FilePrompts['form'] {
  const chat = load.endpoint === 'chat';
  if (!chat && !asText && spoken.every(({ ids }) => ids !== null)) return 'ids';
  const form = chat && spoken.some(({ messages }) => messages !== null) ? 'messages' : 'string';
  const bad = spoken.find(({ text, messages }) => text === null && (form === 'string' || messages === null));
  if (bad === undefined) return form;
  if (bad.messages !== null) throw invalidPrompt(path, bad.line, 'messages need "endpoint: chat" on the load');
  const why = chat || asText ? 'the server takes no token ids here' : 'other lines have no token ids';
  throw invalidPrompt(path, bad.line, `only token ids, and no text to send: ${why}`);
}

function sentAs(form: FilePrompts['form'], spoken: Spoken, path: string, reading: FileReading): FilePrompt {
  const { line, text, messages, outputTokens } = spoken;
  const ids = form === 'ids' ? (spoken.ids ?? []) : [];
  const tokens = form === 'ids' ? ids.length : countOf(spoken, reading);
  const { load } = reading;
  if (tokens !== null && tokens > load.promptTokens) {
    throw invalidPrompt(path, line, `${tokens} prompt tokens, more than the load's promptTokens ${load.promptTokens}`);
  }
  if (outputTokens !== null && outputTokens > load.outputTokens) {
    throw invalidPrompt(
      path,
      line,
      `${outputTokens} output tokens, more than the load's outputTokens ${load.outputTokens}`,
    );
  }
  const bytes =
    form === 'ids'
      ? Buffer.alloc(0)
      : form === 'string'
        ? jsonInside(text ?? '')
        : Buffer.from(JSON.stringify(messages ?? [{ role: 'user', content: text }]));
  return { bytes, ids, tokens, outputTokens };
}

/** Tokens of a text prompt. How many a template adds depends on the number of messages: only a single one is counted. */
function countOf({ text, messages }: Spoken, { tokenizer, load }: FileReading): number | null {
  if (tokenizer === null) return null;
  const single = messages?.length === 1 && messages[0]!.role === 'user' ? messages[0]!.content : null;
  const content = text ?? single;
  return typeof content === 'string' ? tokenizer.count(content, load.endpoint === 'completions') : null;
}

function tooLarge(path: string): ConfigError {
  return new ConfigError('prompt_file_too_large', `${path}: more than ${MAX_FILE_CHARACTERS} characters of prompts`, {
    advice: 'Use a smaller file: a load has a limited number of requests.',
  });
}

function empty(path: string, skipped: number): ConfigError {
  const what = skipped === 0 ? 'no prompt in it' : `none of its ${skipped} conversations can be used`;
  return new ConfigError('prompt_file_empty', `${path}: ${what}`, {
    advice: 'Check the kind of the file, and promptTokens and outputTokens of the load.',
  });
}
