// Entry of the client's process: plays one open load through the real driver and reports what it saw and spent.

import { type ClientEvidence, FIRST_LOAD_ORDINAL, PLAIN_LOAD, type RequestTable } from '../src/core/index.ts';
import { completionsDialect } from '../src/engines/driver.ts';
import { requestIdPrefix } from '../src/loadgen/body.ts';
import { prepareOpenLoad } from '../src/loadgen/open.ts';
import { planOpenLoad } from '../src/workloads/plan.ts';
import { answerParent } from './child.ts';

export interface LoadQuestion {
  readonly port: number;
  readonly rate: number;
  readonly windowS: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly workers: number;
  readonly seed: number;
  readonly originNs: bigint;
}

export interface LoadAnswer {
  readonly requests: RequestTable;
  readonly startNs: number;
  /** Of every X-Request-Id: a dash and the arrival index follow. */
  readonly idPrefix: string;
  readonly scheduleSha256: string;
  readonly client: ClientEvidence;
  /** User and system time of the whole process from its start to the load's end, all threads, us. */
  readonly cpuUs: number;
  /** The part of it from the load's start on. */
  readonly playCpuUs: number;
}

const HOST = '127.0.0.1';
const TOKEN_IDS = [4, 1024] as const;
/** Decides how many sockets are opened ahead; the streams of the bench take 1.3 s. */
const EXPECTED_LATENCY_S = 2;

answerParent<LoadQuestion, LoadAnswer>(async (question) => {
  const { port, rate, windowS, promptTokens, outputTokens, workers, seed, originNs } = question;
  const phases = { warmupS: 0, windowS, tailS: 0, drainS: 30 };
  const load = { ...PLAIN_LOAD, id: 'bench', rate, promptTokens, outputTokens, ...phases };
  const plan = planOpenLoad({ seed, repeat: 1, load, ordinal: FIRST_LOAD_ORDINAL, attempt: 1, tokenIds: TOKEN_IDS });
  const prepared = await prepareOpenLoad({
    plan,
    endpoint: { host: HOST, port },
    dialect: completionsDialect('bench'),
    ignoreEos: true,
    workers,
    originNs,
    ...phases,
    expectedLatencyS: EXPECTED_LATENCY_S,
    totalTimeoutMs: null,
    idleTimeoutMs: 60_000,
    signal: new AbortController().signal,
  });
  const before = cpuUs();
  const result = await prepared.start();
  const after = cpuUs();
  await prepared.dispose();
  return {
    requests: result.requests,
    startNs: result.phases.startNs,
    idPrefix: requestIdPrefix(plan.label),
    scheduleSha256: plan.scheduleSha256,
    client: result.client,
    cpuUs: after,
    playCpuUs: after - before,
  };
});

function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
