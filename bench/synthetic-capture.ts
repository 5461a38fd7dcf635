// A capture of one large cell, made up: every column as a load would leave it, times as uneven as real ones.

import { assessCell } from '../src/analysis/cell.ts';
import { scheduleSha256 } from '../src/analysis/verify/schedule.ts';
import { createRun } from '../src/capture/writer.ts';
import {
  cellId,
  MANIFEST_SCHEMA,
  type ManifestFile,
  OUTCOMES,
  type RequestTable,
  scheduleOf,
  TOKEN_SOURCES,
} from '../src/core/index.ts';
import { labelStream } from '../src/workloads/rng.ts';
import { goodFacts, goodSamples } from '../test/analysis/support.ts';

export interface CaptureSize {
  readonly requests: number;
  readonly tokens: number;
}

const PROMPT_TOKENS = 32;
const TTFT_NS = 60e6;
const ITL_NS = 12e6;
/** Largest share of a gap by which it is off. */
const UNEVEN = 0.2;

/** Writes a run folder that verifies. */
export async function writeSyntheticCapture(dir: string, size: CaptureSize): Promise<void> {
  const base = goodFacts();
  const { startNs, tailEndNs } = base.phases;
  const requests = syntheticRequests(size, startNs, tailEndNs);
  const rate = (size.requests / (tailEndNs - startNs)) * 1e9;
  const load = { ...base.load, rate, promptTokens: PROMPT_TOKENS, outputTokens: size.tokens };
  // Without a server there were no counters to scrape.
  const server = { ...base.server, countersAtStart: null, countersAtEnd: null };
  const facts = { ...base, load, server, scheduleSha256: scheduleSha256(requests.scheduledNs, startNs) };
  const gpu = goodSamples();
  const evidence = { facts, requests, gpu, metrics: [], idleLoaded: null, idleBare: null, pricePerHour: null };
  const manifest: ManifestFile = {
    schema: MANIFEST_SCHEMA,
    runId: 'bench',
    tool: { name: 'tokenomics-bench', version: '0', commit: null, node: process.version },
    experiment: 'bench',
    profile: 'shortened',
    shortened: [],
    configSha256: '0'.repeat(64),
    preregSha256: null,
    synthetic: true,
    engine: { kind: 'mock', version: null },
    gpu: {},
    energy: 'simulated',
    host: {},
    pricePerHour: null,
    slo: facts.slo,
    seed: 1,
    repeats: 1,
    arms: [facts.key.arm],
    loads: [facts.key.load],
    plannedCells: [cellId(facts.key)],
    idleBare: null,
    origin: { monotonicNs: '0', wallMs: 1_000_000 },
    end: null,
    status: 'running',
    failures: [],
  };
  const run = await createRun({ dir, manifest, configText: 'made up\n', origin: { now: () => 0 } });
  const file = { ...facts, ...assessCell(evidence) };
  await run.writeCell({
    file,
    requests,
    schedule: scheduleOf(requests, file.phases.startNs),
    gpu,
    metrics: [],
    edges: { start: null, end: null },
  });
  await run.finish('interrupted', facts.anchors.end);
}

/** Arrivals spread evenly with some noise; every request completed, one token per event and read. */
export function syntheticRequests(
  { requests: count, tokens }: CaptureSize,
  startNs: number,
  endNs: number,
): RequestTable {
  const random = labelStream('synthetic capture');
  const integers = (value: number) => new Int32Array(count).fill(value);
  const events = count * tokens;
  const table = {
    scheduledNs: new Float64Array(count),
    dispatchedNs: new Float64Array(count),
    firstByteNs: new Float64Array(count),
    doneNs: new Float64Array(count),
    eventAtNs: new Float64Array(events),
    eventRead: new Int32Array(events),
  };
  for (let row = 0; row < count; row++) {
    const dueNs = startNs + Math.floor(((row + random.u53()) / count) * (endNs - startNs));
    table.scheduledNs[row] = dueNs;
    table.dispatchedNs[row] = dueNs + Math.floor(random.u53() * 100_000);
    table.firstByteNs[row] = table.dispatchedNs[row]! + 1_000_000;
    let atNs = table.firstByteNs[row]! + TTFT_NS;
    for (let token = 0; token < tokens; token++) {
      table.eventAtNs[row * tokens + token] = atNs;
      table.eventRead[row * tokens + token] = token + 2;
      atNs += Math.floor(ITL_NS * (1 + UNEVEN * (random.u53() - 0.5)));
    }
    table.doneNs[row] = table.eventAtNs[(row + 1) * tokens - 1]!;
  }
  return {
    ...table,
    count,
    index: Int32Array.from({ length: count }, (_, row) => row),
    outcome: new Uint8Array(count).fill(OUTCOMES.indexOf('ok')),
    httpStatus: integers(200),
    finishReason: new Array(count).fill('length'),
    promptTokensSent: integers(PROMPT_TOKENS),
    promptTokensReported: integers(PROMPT_TOKENS),
    requestedTokens: integers(tokens),
    outputTokens: integers(tokens),
    tokensFrom: new Int8Array(count).fill(TOKEN_SOURCES.indexOf('usage')),
    usageTokens: integers(tokens),
    idTokens: integers(tokens),
    firstVisibleNs: new Float64Array(count).fill(Number.NaN),
    cachedTokens: integers(-1),
    comments: integers(0),
    flags: integers(0),
    resent: integers(0),
    errorText: new Array(count).fill(null),
    eventStart: Int32Array.from({ length: count + 1 }, (_, row) => row * tokens),
    eventTokens: new Int32Array(events).fill(1),
  };
}
