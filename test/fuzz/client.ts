// The client's own request path, fed with the reads of an answer; its words turned into those of the reference.

import assert from 'node:assert/strict';
import type { FinishedRequest } from '../../src/loadgen/finished.ts';
import { Exchange, type TemplateShelf } from '../../src/loadgen/request.ts';
import type { Answer, Meaning } from './reference.ts';

const DISPATCHED_NS = 0;
const READ_NS = 1_000_000;
/** Sockets of a thread share one buffer: what was read is overwritten by the next read. */
const shared = Buffer.alloc(1024 * 1024);

/** Forms of events learned from all earlier answers, as a load's requests share them. */
const learned: TemplateShelf = { template: null };

/**
 * Read number k comes k ms after the dispatch, so that every time says which read it is. With its text kept every event
 * goes through the JSON parser; without, most do not: both must see the same.
 */
export function seenByClient(answer: Answer): Meaning {
  const parsed = play(answer, true, { template: null });
  const byForm = play(answer, false, learned);
  assert.deepEqual({ ...byForm, text: parsed.text }, parsed);
  return parsed;
}

function play(answer: Answer, keepText: boolean, shelf: TemplateShelf): Meaning {
  const { raw, readEnds, after, requestedTokens, ignoreEos } = answer;
  const job = { index: 0, scheduledNs: 0, requestedTokens, promptTokensSent: 8, ignoreEos };
  const exchange = new Exchange(job, { keepText, shelf });
  exchange.dispatchedNs = DISPATCHED_NS;
  let from = 0;
  for (const [index, end] of readEnds.entries()) {
    const length = raw.copy(shared, 0, from, end);
    exchange.read(shared, length, (index + 1) * READ_NS);
    shared.fill(0x2e, 0, length);
    from = end;
  }
  const endNs = Math.max(1, readEnds.length) * READ_NS;
  if (after === 'closed') exchange.connectionEnded(endNs);
  else if (after === 'reset') exchange.connectionLost(endNs, 'ECONNRESET');
  else exchange.timedOut(endNs, 'no end within the limit');
  if (exchange.result === null) throw new Error('the answer left the request without an outcome');
  return meaning(exchange.result, (exchange.log.texts ?? []).join(''));
}

function meaning(result: FinishedRequest, text: string): Meaning {
  return {
    outcome: result.outcome,
    httpStatus: result.httpStatus,
    finishReason: result.finishReason,
    promptTokens: result.promptTokensReported,
    outputTokens: result.outputTokens,
    tokensFrom: result.tokensFrom,
    text,
    eventRead: result.eventRead,
    eventTokens: result.eventTokens,
    doneRead: result.doneNs === null ? null : (result.doneNs - DISPATCHED_NS) / READ_NS,
  };
}
