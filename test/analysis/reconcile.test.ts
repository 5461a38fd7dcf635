import { describe, expect, test } from 'vitest';
import { reconcile } from '../../src/analysis/reconcile.ts';
import { requestTable, VLLM_METRICS } from '../../src/core/index.ts';
import { completedRequest, failedRequest, goodFacts, PROMPT_TOKENS, S } from './support.ts';

const REQUESTS = requestTable([completedRequest(0, S), completedRequest(1, 2 * S), failedRequest(2, 3 * S)]);
const { generationTokens, promptTokens, requestSuccess, running, waiting } = VLLM_METRICS;
const EDGE = { [generationTokens]: 100, [promptTokens]: 1000, [requestSuccess]: 9, [running]: 0, [waiting]: 0 };
const GROWN = {
  ...EDGE,
  [generationTokens]: 116,
  [promptTokens]: 1000 + 2 * PROMPT_TOKENS,
  [requestSuccess]: 11,
};

const between = (end: Record<string, number>) =>
  reconcile({ ...goodFacts().server, countersAtStart: EDGE, countersAtEnd: end }, REQUESTS);

describe('reconciliation with the server', () => {
  test('agrees when the server grew by what the client received', () => {
    expect(between(GROWN)).toEqual({
      outputTokens: { client: 16, server: 16, difference: 0 },
      promptTokens: { client: 2 * PROMPT_TOKENS, server: 2 * PROMPT_TOKENS, difference: 0 },
      completedRequests: { client: 2, server: 2, difference: 0 },
      drained: true,
      agrees: true,
    });
  });

  test('shows hidden traffic as a surplus of the server', () => {
    expect(between({ ...GROWN, [generationTokens]: 120 })).toMatchObject({
      outputTokens: { difference: 4 },
      agrees: false,
    });
  });

  test('says when the scrapes were not drained', () => {
    expect(between({ ...GROWN, [running]: 1 }).drained).toBe(false);
  });

  test('never agrees without the generation counter', () => {
    const { [generationTokens]: _left, ...end } = GROWN;
    expect(between(end)).toMatchObject({ outputTokens: { server: null, difference: null }, agrees: false });
  });
});
