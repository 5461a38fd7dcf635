// Entry of the parser's process: events per second of CPU from bytes in memory to finished records, without a socket.

import { median } from '../src/analysis/summary.ts';
import { Exchange } from '../src/loadgen/request.ts';
import { DONE_EVENT, tokenEvent, usageEvent } from '../src/sim/event-shapes.ts';
import type { GenerationRequest } from '../src/sim/generation-request.ts';
import { answerParent } from './child.ts';

export interface ParseSpeed {
  readonly bytesPerEvent: number;
  /** Events per CPU second when every read brings one event, and when a read brings 64 KiB of them. */
  readonly onePerRead: Throughput;
  readonly fullReads: Throughput;
}

export interface Throughput {
  readonly eventsPerCpuS: number;
  /** The same reads, each byte looked at once and nothing else done. */
  readonly touchOnlyEventsPerCpuS: number;
}

const TOKENS = 1024;
const READ_BYTES = 64 * 1024;
const ROUND_US = 150_000;
const ROUNDS = 5;
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n';

answerParent<object, ParseSpeed>(() => {
  const pieces = answerPieces();
  const bytes = Buffer.concat(pieces);
  const full = Array.from({ length: Math.ceil(bytes.length / READ_BYTES) }, (_, i) =>
    bytes.subarray(i * READ_BYTES, (i + 1) * READ_BYTES),
  );
  return {
    bytesPerEvent: bytes.length / TOKENS,
    onePerRead: throughput(pieces),
    fullReads: throughput(full),
  };
});

/** The answer to one request as the mock engine writes it, in one piece per write. */
function answerPieces(): Buffer[] {
  const request: GenerationRequest = {
    kind: 'completion',
    id: 'cmpl-bench-00000001',
    requestId: 'bench-1',
    createdS: 1_764_547_200,
    model: 'bench',
    promptTokens: Array.from({ length: 64 }, (_, i) => 4 + i),
    maxTokens: TOKENS,
    stream: true,
    includeUsage: true,
    continuousUsage: false,
    returnTokenIds: true,
    outOfVocabulary: null,
  };
  const events = Array.from({ length: TOKENS }, (_, i) => tokenEvent(request, i, 4 + (i % 1020), i === TOKENS - 1));
  const last = chunk(usageEvent(request, TOKENS, 0)) + chunk(DONE_EVENT);
  return [HEAD, ...events.map(chunk), `${last}0\r\n\r\n`].map((text) => Buffer.from(text));
}

const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

/** Parsing and touching take turns, so that a change of the clock meets both. */
function throughput(reads: readonly Buffer[]): Throughput {
  const parsed: number[] = [];
  const touched: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    parsed.push(eventsPerCpuS(() => parse(reads)));
    touched.push(eventsPerCpuS(() => touch(reads)));
  }
  return { eventsPerCpuS: median(parsed), touchOnlyEventsPerCpuS: median(touched) };
}

function eventsPerCpuS(readAnswer: () => number): number {
  const began = process.cpuUsage();
  for (let events = 0; ; ) {
    events += readAnswer();
    const { user, system } = process.cpuUsage(began);
    if (user + system >= ROUND_US) return (events / (user + system)) * 1e6;
  }
}

function parse(reads: readonly Buffer[]): number {
  const job = { index: 0, scheduledNs: 0, requestedTokens: TOKENS, promptTokensSent: 64, ignoreEos: true };
  const exchange = new Exchange(job, { keepText: false, shelf: { template: null } });
  let atNs = 0;
  for (const bytes of reads) exchange.read(bytes, bytes.length, atNs++);
  const { result } = exchange;
  if (result?.outcome !== 'ok' || result.eventAtNs.length !== TOKENS) {
    throw new Error(`the parser made ${result?.outcome ?? 'nothing'} of an answer of ${TOKENS} tokens`);
  }
  return TOKENS;
}

/** The sum keeps the loop from being left out as useless. */
function touch(reads: readonly Buffer[]): number {
  let sum = 0;
  for (const bytes of reads) for (let i = 0; i < bytes.length; i++) sum += bytes[i]!;
  return sum > 0 ? TOKENS : 0;
}
