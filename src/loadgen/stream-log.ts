// What has a token stream said so far? Content events with their counts, usage, finish reason, errors.

import type { TokenSource } from '../core/index.ts';
import { type Credits, creditEvents } from './credits.ts';
import { readEvent, type StreamChunk } from './openai-events.ts';

export class StreamLog {
  readonly eventAtNs: number[] = [];
  readonly eventRead: number[] = [];
  /** Of each content event: its token ids, and the last usage seen before the next one (-1 for none). */
  readonly ids: number[] = [];
  readonly usage: number[] = [];
  usageBefore = -1;
  /** Last `completion_tokens` seen. */
  usageTokens: number | null = null;
  promptTokens: number | null = null;
  cachedTokens: number | null = null;
  firstVisibleNs: number | null = null;
  finishReason: string | null = null;
  errorText: string | null = null;
  errorSeen = false;
  malformed = false;
  doneAtNs: number | null = null;
  /** Visible text, kept only when asked for. */
  readonly texts: string[] | null;
  #idTokens = 0;
  #counted = 0;

  constructor(keepText: boolean) {
    this.texts = keepText ? [] : null;
  }

  /** Takes one complete event, received in read number `read` at `atNs`. Returns it if it is a chunk. */
  add(name: string, data: string, atNs: number, read: number): StreamChunk | null {
    const event = readEvent(name, data);
    switch (event.kind) {
      case 'chunk':
        this.#addChunk(event, atNs, read);
        return event;
      case 'done':
        this.doneAtNs = atNs;
        break;
      case 'error':
        this.errorSeen = true;
        this.errorText ??= event.text;
        break;
      case 'malformed':
        this.malformed = true;
        this.errorText ??= event.text;
        break;
      case 'ignored':
        break;
    }
    return null;
  }

  /** Takes an event that is known to be content: `ids` token ids, `usage` completion tokens so far or -1. */
  addContent(ids: number, usage: number, atNs: number, read: number): void {
    this.eventAtNs.push(atNs);
    this.eventRead.push(read);
    this.ids.push(ids);
    this.usage.push(usage);
    this.#idTokens += ids;
    this.#counted += ids > 0 ? ids : 1;
    if (usage !== -1) this.usageTokens = usage;
  }

  /** How many ids the stream carried, null when no event had any. */
  get idTokens(): number | null {
    return this.#idTokens > 0 ? this.#idTokens : null;
  }

  /** Usage wins over token ids, token ids over events; nothing seen is nothing counted. */
  get tokensFrom(): TokenSource | null {
    if (this.usageTokens !== null) return 'usage';
    if (this.#idTokens > 0) return 'token_ids';
    return this.eventAtNs.length > 0 ? 'events' : null;
  }

  get outputTokens(): number {
    if (this.usageTokens !== null) return this.usageTokens;
    return this.#idTokens > 0 ? this.#idTokens : this.eventAtNs.length;
  }

  credits(): Credits {
    return creditEvents(this, this.outputTokens);
  }

  #addChunk(chunk: StreamChunk, atNs: number, read: number): void {
    if (this.texts !== null && chunk.text !== '') this.texts.push(chunk.text);
    if (chunk.finishReason !== null) this.finishReason = chunk.finishReason;
    if (chunk.promptTokens !== null) this.promptTokens = chunk.promptTokens;
    if (chunk.cachedTokens !== null) this.cachedTokens = chunk.cachedTokens;
    if (chunk.hasVisible) this.firstVisibleNs ??= atNs;
    const usage = chunk.completionTokens;
    if (chunk.hasText || chunk.ids > 0 || this.#grew(chunk)) this.addContent(chunk.ids, usage ?? -1, atNs, read);
    else if (usage !== null) this.#noteUsage(usage);
  }

  /** Continuous usage can make a choice without text and ids content; the first usage at the end cannot. */
  #grew(chunk: StreamChunk): boolean {
    const usage = chunk.completionTokens;
    if (usage === null || !chunk.hasChoice) return false;
    if (this.usageTokens !== null) return usage > this.usageTokens;
    return chunk.finishReason === null && usage > this.#counted;
  }

  #noteUsage(usage: number): void {
    this.usageTokens = usage;
    if (this.usage.length === 0) this.usageBefore = usage;
    else this.usage[this.usage.length - 1] = usage;
  }
}
