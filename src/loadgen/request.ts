// One request from its first byte out to its outcome: a state machine that is fed socket reads and ends in a record.

import { flagMask, NS_PER_MS, type Outcome, type RequestFlag } from '../core/index.ts';
import { EventTemplate } from './event-template.ts';
import type { FinishedRequest, RequestJob } from './finished.ts';
import { type ResponseHandler, ResponseParser } from './http.ts';
import type { ResponseHead } from './http-head.ts';
import { clip, isErrorObject, parse, type StreamChunk } from './openai-events.ts';
import { decideOutcome, type Ending, EVENT_STREAM, isComplete } from './outcome.ts';
import { type EventHandler, SseScanner } from './sse.ts';
import { StreamLog } from './stream-log.ts';

/** Trailer time above which a request carries `late_trailer`. */
const LATE_TRAILER_NS = 100 * NS_PER_MS;
/** Bodies that are no event stream are kept up to this size, to find an error object in them. */
const PLAIN_BODY_LIMIT = 1024 * 1024;

/** A stream whose events keep changing their form is read by the parser alone after so many attempts. */
const MAX_LESSONS = 8;

/** The form of content events as far as a client has seen it: shared by its requests, since their server is the same. */
export interface TemplateShelf {
  template: EventTemplate | null;
}

export interface ExchangeOptions {
  readonly keepText: boolean;
  readonly shelf: TemplateShelf;
}

export class Exchange implements ResponseHandler, EventHandler {
  readonly job: RequestJob;
  /** Clock read right before the first byte was written, run-relative ns. */
  dispatchedNs: number | null = null;
  resent = 0;
  lateSocket = false;
  /** Last read, or the dispatch: the idle limit counts from here. */
  lastActivityNs = 0;
  /** Set once the request is terminal; from then on nothing changes. */
  outcome: Outcome | null = null;
  readonly log: StreamLog;
  #parser = new ResponseParser(this);
  #sse = new SseScanner(this);
  #head: ResponseHead | null = null;
  #isStream = false;
  #bodyBytes = 0;
  #plainBody: Buffer[] = [];
  #firstByteNs: number | null = null;
  /** What the last event was read as, null when it was no chunk. */
  #lastChunk: StreamChunk | null = null;
  #shelf: TemplateShelf;
  #template: EventTemplate | null = null;
  #lessons = 0;
  #atNs = 0;
  #reads = 0;
  #doneNs: number | null = null;
  #reason: string | null = null;
  #endedNs: number | null = null;
  #record: FinishedRequest | null = null;

  constructor(job: RequestJob, options: ExchangeOptions) {
    this.job = job;
    this.log = new StreamLog(options.keepText);
    this.#shelf = options.shelf;
  }

  /** The whole record once the request is terminal, put together when it is first asked for. */
  get result(): FinishedRequest | null {
    if (this.outcome === null) return null;
    this.#record ??= this.#makeRecord(this.outcome);
    return this.#record;
  }

  /** No later event matters: the end marker was read, or the request is terminal. */
  get closed(): boolean {
    return this.log.doneAtNs !== null;
  }

  /** z_i of the record; null before it is known, and where the answer had no end. */
  get doneNs(): number | null {
    return this.#doneNs;
  }

  get httpStatus(): number | null {
    return this.#head?.status ?? null;
  }

  /** True once a byte of the response came. */
  get answered(): boolean {
    return this.#firstByteNs !== null;
  }

  /** The whole response was read, and its socket may carry another request. */
  get reusable(): boolean {
    return this.#parser.state === 'done' && this.#head !== null && this.#head.keepAlive;
  }

  /** The parser wants no more bytes. */
  get drained(): boolean {
    return this.#parser.state === 'done' || this.#parser.state === 'broken';
  }

  /**
   * Takes bytes [0, end) of one socket read, stamped `atNs` before any of them was looked at.
   * @returns false when more bytes came than belong to the response.
   */
  read(bytes: Buffer, end: number, atNs: number): boolean {
    this.#atNs = atNs;
    this.#reads += 1;
    this.lastActivityNs = atNs;
    this.#firstByteNs ??= atNs;
    const used = this.#parser.feed(bytes, 0, end);
    if (this.outcome !== null) return used === end;
    if (this.closed || this.#parser.state === 'done') this.#end('in_order', atNs);
    else if (this.#parser.state === 'broken') this.#end('broken', atNs, this.#parser.problem);
    return used === end;
  }

  /** The peer closed in order. */
  connectionEnded(atNs: number): void {
    if (this.outcome !== null) return;
    this.#end(this.#parser.endsWithConnection ? 'in_order' : 'broken', atNs, 'the connection was closed too early');
  }

  connectionLost(atNs: number, reason: string): void {
    if (this.outcome === null) this.#end('broken', atNs, reason);
  }

  timedOut(atNs: number, reason: string): void {
    if (this.outcome === null) this.#end('timeout', atNs, reason);
  }

  /** The driver gives up: what arrived is credited. An answer that was already complete keeps its own outcome. */
  giveUp(outcome: 'unfinished' | 'cancelled' | 'client_error' | 'connect_error', reason: string | null): void {
    if (this.outcome !== null) return;
    const { finishReason, usageTokens } = this.log;
    if (isComplete({ doneSeen: this.closed, finishReason, usageSeen: usageTokens !== null })) {
      this.#end('timeout', this.lastActivityNs);
    } else this.#finish(outcome, null, reason);
  }

  onHead(head: ResponseHead): void {
    this.#head = head;
    this.#isStream = head.contentType === EVENT_STREAM && head.status >= 200 && head.status <= 299;
  }

  onBody(bytes: Buffer, start: number, end: number): void {
    this.#bodyBytes += end - start;
    if (this.#isStream) this.#sse.feed(bytes, start, end);
    else if (this.#bodyBytes <= PLAIN_BODY_LIMIT) this.#plainBody.push(Buffer.from(bytes.subarray(start, end)));
  }

  onEvent(name: string, bytes: Buffer, start: number, end: number): void {
    this.#lastChunk = this.log.add(name, bytes.toString('utf8', start, end), this.#atNs, this.#reads);
  }

  onWholeEvent(bytes: Buffer, start: number, end: number): void {
    const chunk = this.#lastChunk;
    if (chunk === null || this.log.texts !== null || this.#lessons === MAX_LESSONS) return;
    if (!chunk.hasText) return;
    this.#lessons += 1;
    this.#shelf.template = EventTemplate.learn(bytes, start, end, chunk) ?? this.#shelf.template;
  }

  takeKnown(bytes: Buffer, start: number, end: number): number {
    const own = this.#template;
    if (own !== null) {
      const after = own.match(bytes, start, end);
      if (after !== -1 && own.hasText) return this.#credit(own, after);
    }
    const { template } = this.#shelf;
    if (template === null || this.#lessons === MAX_LESSONS || this.log.texts !== null) return -1;
    const after = template.match(bytes, start, end);
    if (after === -1 || !template.hasText) return -1;
    this.#lessons += 1;
    this.#template = template.narrow(bytes, start, after);
    return this.#credit(template, after);
  }

  #credit(template: EventTemplate, after: number): number {
    const { log } = this;
    log.addContent(template.ids, template.completionTokens, this.#atNs, this.#reads);
    if (template.hasVisible) log.firstVisibleNs ??= this.#atNs;
    if (template.promptTokens !== -1) log.promptTokens = template.promptTokens;
    if (template.cachedTokens !== null) log.cachedTokens = template.cachedTokens;
    if (template.finishReason !== null) log.finishReason = template.finishReason;
    return after;
  }

  #end(ending: Ending, atNs: number, reason: string | null = null): void {
    if (this.#head === null) {
      this.#finish(this.#outcomeWithoutHead(ending), null, reason);
      return;
    }
    this.#readPlainBody();
    const { log } = this;
    const outcome = decideOutcome({
      status: this.#head.status,
      contentType: this.#head.contentType,
      bodyBytes: this.#bodyBytes,
      errorSeen: log.errorSeen,
      malformed: log.malformed,
      doneSeen: this.closed,
      finishReason: log.finishReason,
      usageSeen: log.usageTokens !== null,
      ending,
      contentEvents: log.eventAtNs.length,
      outputTokens: log.outputTokens,
      tokensFrom: log.tokensFrom,
      requestedTokens: this.job.requestedTokens,
      ignoreEos: this.job.ignoreEos,
    });
    const broke = outcome === 'timeout' || outcome === 'reset';
    const doneNs = log.doneAtNs ?? (ending === 'in_order' ? atNs : null);
    this.#finish(outcome, doneNs, broke ? reason : null, atNs);
  }

  #outcomeWithoutHead(ending: Ending): Outcome {
    if (ending === 'timeout') return 'timeout';
    if (this.#firstByteNs === null) return 'no_response';
    return this.#parser.state === 'broken' ? 'malformed' : 'reset';
  }

  #readPlainBody(): void {
    if (this.#isStream || this.#plainBody.length === 0) return;
    const text = Buffer.concat(this.#plainBody).toString('utf8');
    this.#plainBody = [];
    this.log.errorText ??= clip(text);
    if (this.#head?.contentType === 'application/json') this.log.errorSeen = isErrorObject(parse(text));
  }

  #finish(outcome: Outcome, doneNs: number | null, reason: string | null, endedNs: number | null = null): void {
    this.outcome = outcome;
    this.#doneNs = doneNs;
    this.#reason = reason;
    this.#endedNs = endedNs;
  }

  #makeRecord(outcome: Outcome): FinishedRequest {
    const { job, log } = this;
    const credits = log.credits();
    return {
      index: job.index,
      scheduledNs: job.scheduledNs,
      dispatchedNs: this.dispatchedNs,
      firstByteNs: this.#firstByteNs,
      firstVisibleNs: log.firstVisibleNs,
      doneNs: this.#doneNs,
      outcome,
      httpStatus: this.httpStatus,
      finishReason: log.finishReason,
      promptTokensSent: job.promptTokensSent,
      promptTokensReported: log.promptTokens,
      requestedTokens: job.requestedTokens,
      outputTokens: log.outputTokens,
      tokensFrom: log.tokensFrom,
      usageTokens: log.usageTokens,
      idTokens: log.idTokens,
      cachedTokens: log.cachedTokens,
      comments: this.#sse.comments,
      flags: flagMask(this.#flags(credits.tokens, credits.interpolated, this.#endedNs)),
      resent: this.resent,
      errorText: log.errorText ?? this.#reason,
      eventAtNs: log.eventAtNs,
      eventTokens: credits.tokens,
      eventRead: log.eventRead,
    };
  }

  #flags(tokens: readonly number[], interpolated: boolean, endedNs: number | null): RequestFlag[] {
    const { job, log } = this;
    const { eventRead: reads } = log;
    const first = tokens.findIndex((count) => count > 0);
    const last = tokens.findLastIndex((count) => count > 0);
    const flags: RequestFlag[] = [];
    if (reads.some((read, i) => i > 0 && read === reads[i - 1])) flags.push('coalesced');
    if (first !== -1 && tokens[first]! > 1) flags.push('fat_first_event');
    if (first !== -1 && log.outputTokens >= 2 && reads[first] === reads[last]) flags.push('not_incremental');
    if (!job.templated && promptsDiffer(job.promptTokensSent, log.promptTokens)) flags.push('prompt_mismatch');
    if (log.tokensFrom === 'events') flags.push('count_unverified');
    if (last !== -1 && endedNs !== null && endedNs - log.eventAtNs[last]! > LATE_TRAILER_NS) flags.push('late_trailer');
    if (interpolated) flags.push('counts_interpolated');
    if (this.lateSocket) flags.push('late_socket');
    if (log.usageTokens !== null && log.idTokens !== null && log.usageTokens !== log.idTokens)
      flags.push('usage_differs');
    return flags;
  }
}

const promptsDiffer = (sent: number | null, reported: number | null): boolean =>
  sent !== null && reported !== null && sent !== reported;
