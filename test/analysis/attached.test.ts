// A server that was running already: what it does not show is not evaluated and labelled; what it does show counts in full.
import { expect, test } from 'vitest';
import type { CellFacts } from '../../src/analysis/cell.ts';
import { PROCESS_START_METRIC, type RequestRecord, VLLM_METRICS } from '../../src/core/index.ts';
import { assess, ruleOf } from './support.ts';

type Server = CellFacts['server'];
const STARTED = { [PROCESS_START_METRIC]: 1_700_000_000.25 };

const attached = (change: (server: Server) => Partial<Server>) => (facts: CellFacts) => {
  const server = { ...facts.server, pid: null, startTimeAtStart: null, startTimeAtEnd: null };
  return { ...facts, server: { ...server, ...change(server) } };
};
const bothEdges = (more: Record<string, number>) =>
  attached((server) => ({
    countersAtStart: { ...server.countersAtStart, ...more },
    countersAtEnd: { ...server.countersAtEnd, ...more },
  }));

test('without metrics the rules that need them are not evaluated, the cell can be valid, and its label says so', () => {
  const cell = assess({ facts: attached(() => ({ countersAtStart: null, countersAtEnd: null })) });
  for (const rule of ['V17', 'V18', 'V19']) expect(ruleOf(cell, rule)).toMatchObject({ status: 'not_evaluated' });
  expect(cell.labels).toContain('no_server_metrics');
  expect(cell.valid).toBe(true);
});

test('without a counter, the usage of the answers tells of the prefix cache, where it does', () => {
  const facts = attached(() => ({ countersAtStart: null, countersAtEnd: null }));
  const requests = (cachedTokens: number) => (record: RequestRecord) => ({ ...record, cachedTokens });
  expect(ruleOf(assess({ facts, requests: requests(0) }), 'V17')).toMatchObject({ status: 'pass' });
  const cached = assess({ facts, requests: requests(4) });
  expect(ruleOf(cached, 'V17')).toMatchObject({ status: 'hit', act: 'X', code: 'prefix_hits' });
  expect(cached.valid).toBe(false);
});

test('with them the server is judged like any other', () => {
  const good = assess({ facts: bothEdges(STARTED) });
  expect(good.labels).not.toContain('no_server_metrics');
  expect(ruleOf(good, 'V19')).toMatchObject({ status: 'pass' });
  const restarted = assess({
    facts: (facts) => {
      const changed = bothEdges(STARTED)(facts);
      const countersAtEnd = { ...changed.server.countersAtEnd, [PROCESS_START_METRIC]: 1_700_000_100 };
      return { ...changed, server: { ...changed.server, countersAtEnd } };
    },
  });
  expect(ruleOf(restarted, 'V19')).toMatchObject({ status: 'hit', code: 'server_restart' });
  const cached = assess({
    facts: (facts) => {
      const changed = bothEdges(STARTED)(facts);
      const countersAtEnd = { ...changed.server.countersAtEnd, [VLLM_METRICS.prefixHits]: 64 };
      return { ...changed, server: { ...changed.server, countersAtEnd } };
    },
  });
  expect(ruleOf(cached, 'V17')).toMatchObject({ status: 'hit', code: 'prefix_hits' });
});

test('a counter shown at one edge only is missing evidence, as everywhere', () => {
  const cell = assess({ facts: attached(() => ({ countersAtEnd: null })) });
  expect(ruleOf(cell, 'V17')).toMatchObject({ status: 'hit', code: 'no_evidence' });
});

test('a server that stopped answering is an excluded cell, whatever it showed before', () => {
  const gone = attached(() => ({ countersAtStart: null, countersAtEnd: null, died: 'it stopped answering' }));
  expect(ruleOf(assess({ facts: gone }), 'V19')).toMatchObject({ status: 'hit', code: 'server_restart' });
});
