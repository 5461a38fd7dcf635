// Which step the mock engine takes next: continuous batching over a bounded KV cache. Pure state, no time and no effects.

import { BLOCK_TOKENS, PrefixCache } from './prefix-cache.ts';
import { contextTokens, type Sequence } from './sequence.ts';

export interface SchedulerOptions {
  readonly maxSeqs: number;
  readonly kvTokens: number;
  readonly prefixCaching: boolean;
  /** Prompt tokens that may be prefilled in a row while others wait to decode. */
  readonly maxBatchedTokens: number;
}

export interface PrefillStep {
  readonly kind: 'prefill';
  readonly sequence: Sequence;
  /** Tokens to compute: the context less what the prefix cache holds. */
  readonly tokens: number;
}

export interface DecodeStep {
  readonly kind: 'decode';
  readonly sequences: readonly Sequence[];
  /** Sum of the contexts. */
  readonly contextTokens: number;
}

export type EngineStep = PrefillStep | DecodeStep;

export interface SchedulerCounters {
  preemptions: number;
  prefixQueries: number;
  prefixHits: number;
}

const blocksFor = (tokens: number): number => Math.ceil(tokens / BLOCK_TOKENS);

/**
 * Prompts are prefilled whole, one per step, before anyone decodes (METHOD 6.2: prefill delays decode); after
 * `maxBatchedTokens` of them in a row one decode step gets its turn, so that a burst cannot starve the batch.
 */
export class BatchScheduler {
  readonly counters: SchedulerCounters = { preemptions: 0, prefixQueries: 0, prefixHits: 0 };
  readonly #options: SchedulerOptions;
  readonly #cache: PrefixCache | null;
  readonly #totalBlocks: number;
  readonly #waiting: Sequence[] = [];
  /** In order of admission. */
  #running: Sequence[] = [];
  #freeBlocks: number;
  #prefilledInARow = 0;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#totalBlocks = Math.floor(options.kvTokens / BLOCK_TOKENS);
    this.#freeBlocks = this.#totalBlocks;
    this.#cache = options.prefixCaching ? new PrefixCache(this.#totalBlocks) : null;
  }

  get running(): number {
    return this.#running.length;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Share of the KV cache that running sequences hold, 0..1. */
  get kvUsage(): number {
    return this.#totalBlocks === 0 ? 0 : 1 - this.#freeBlocks / this.#totalBlocks;
  }

  add(sequence: Sequence): void {
    this.#waiting.push(sequence);
  }

  /** Takes a sequence out, whatever its state. False when it was not there. */
  abort(sequence: Sequence): boolean {
    const waiting = this.#waiting.indexOf(sequence);
    if (waiting >= 0) this.#waiting.splice(waiting, 1);
    else if (!this.#running.includes(sequence)) return false;
    else this.#release(sequence);
    return true;
  }

  resetPrefixCache(): void {
    this.#cache?.clear();
  }

  /** The next step, with its KV blocks reserved; null when nothing can run. */
  next(): EngineStep | null {
    const decodeTurn = this.#prefilledInARow >= this.#options.maxBatchedTokens && this.#running.length > 0;
    const prefill = decodeTurn ? null : this.#nextPrefill();
    if (prefill !== null) {
      this.#prefilledInARow += prefill.tokens;
      return prefill;
    }
    this.#prefilledInARow = 0;
    return this.#nextDecode();
  }

  /** Books the tokens of a finished step; returns the sequences that got one (those aborted meanwhile did not). */
  complete(step: EngineStep): readonly Sequence[] {
    const members = step.kind === 'prefill' ? [step.sequence] : step.sequences;
    const alive = members.filter((sequence) => this.#running.includes(sequence));
    for (const sequence of alive) {
      sequence.generated += 1;
      if (sequence.generated >= sequence.maxTokens) this.#release(sequence);
    }
    if (step.kind === 'prefill') this.#cache?.add(step.sequence.promptTokens);
    return alive;
  }

  #nextPrefill(): PrefillStep | null {
    const sequence = this.#waiting[0];
    if (sequence === undefined || this.#running.length >= this.#options.maxSeqs) return null;
    const context = contextTokens(sequence);
    const blocks = blocksFor(context + 1);
    if (blocks > this.#freeBlocks) return null;
    this.#waiting.shift();
    this.#freeBlocks -= blocks;
    sequence.blocks = blocks;
    sequence.cachedTokens = this.#lookUp(sequence);
    this.#running.push(sequence);
    return { kind: 'prefill', sequence, tokens: context - sequence.cachedTokens };
  }

  #lookUp(sequence: Sequence): number {
    if (this.#cache === null) return 0;
    const hits = this.#cache.hitTokens(sequence.promptTokens);
    this.counters.prefixQueries += sequence.promptTokens.length;
    this.counters.prefixHits += hits;
    return hits;
  }

  #nextDecode(): DecodeStep | null {
    for (const sequence of [...this.#running]) {
      if (this.#running.includes(sequence)) this.#reserveNextToken(sequence);
    }
    if (this.#running.length === 0) return null;
    const sequences = [...this.#running];
    return { kind: 'decode', sequences, contextTokens: sequences.reduce((sum, one) => sum + contextTokens(one), 0) };
  }

  /** Gets the block for one more token, at the cost of the latest arrivals when none is free. */
  #reserveNextToken(sequence: Sequence): void {
    const needed = blocksFor(contextTokens(sequence) + 1) - sequence.blocks;
    while (needed > this.#freeBlocks && this.#running.includes(sequence)) this.#preempt(this.#running.at(-1)!);
    if (!this.#running.includes(sequence)) return;
    this.#freeBlocks -= needed;
    sequence.blocks += needed;
  }

  /** Throws a sequence's KV away; it is computed again, its tokens so far included, before it goes on. */
  #preempt(sequence: Sequence): void {
    this.#release(sequence);
    sequence.preemptions += 1;
    this.counters.preemptions += 1;
    this.#waiting.unshift(sequence);
  }

  #release(sequence: Sequence): void {
    this.#freeBlocks += sequence.blocks;
    sequence.blocks = 0;
    this.#running = this.#running.filter((one) => one !== sequence);
  }
}
