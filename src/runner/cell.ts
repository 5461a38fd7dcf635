// One cell: prepare the load, play it, take the edges, judge it, and write it down.

import { assessCell } from '../analysis/cell.ts';
import { parsePrometheus, sumSeries } from '../analysis/prometheus.ts';
import { reconcile } from '../analysis/reconcile.ts';
import {
  type Anchor,
  CELL_SCHEMA,
  type CellFile,
  type ClientEvidence,
  type ControlEvidence,
  cellId,
  type Interval,
  type LoadPhases,
  type RequestTable,
  type ServerEvidence,
  sleep,
} from '../core/index.ts';
import { dialectOfLoad } from '../engines/driver.ts';
import type { RunningEngine } from '../engines/engine.ts';
import { processStartTime } from '../engines/proc.ts';
import { type OpenLoadResult, prepareOpenLoad } from '../loadgen/open.ts';
import { planOpenLoad, type RequestPlan } from '../workloads/plan.ts';
import { type LaunchContext, warn } from './context.ts';
import type { CellPlan } from './plan.ts';

/** Samples are kept this far beyond the load on both sides: METHOD 1.9 needs change points beyond both edges. */
const SAMPLE_MARGIN_S = 1.5;
const DRAIN_POLL_MS = 200;
const DRAIN_LIMIT_MS = 5_000;

export interface CellContext extends LaunchContext {
  readonly engine: RunningEngine;
  readonly control: ControlEvidence;
  /** Aborts on the user's signal and when the server dies; its reason says which. */
  readonly loadSignal: AbortSignal;
}

interface Edge {
  readonly text: string | null;
  readonly counters: Readonly<Record<string, number>> | null;
}

/** Runs one cell to its end, whatever happens to the server meanwhile; throws only when nothing can be written. */
export async function runCell(context: CellContext, cell: CellPlan): Promise<CellFile> {
  const { experiment, origin, engine, reporter } = context;
  const plan = planOpenLoad({
    seed: experiment.seed,
    repeat: cell.key.repeat,
    load: cell.load,
    ordinal: cell.ordinal,
    attempt: cell.key.attempt,
    tokenIds: experiment.model.tokenIds,
    material: context.prompts.of(cell.load),
  });
  sayRepeats(context, cell, plan);
  const startTimeAtStart = processStartTime(engine.pid);
  const edgeAtStart = await takeEdge(context, DRAIN_LIMIT_MS);
  const anchorAtStart = origin.anchor();
  const result = await playLoad(context, cell, plan);
  const anchorAtEnd = origin.anchor();
  const edgeAtEnd = context.loadSignal.aborted ? await scrapeEdge(context) : await takeEdge(context, DRAIN_LIMIT_MS);
  const server: ServerEvidence = {
    pid: engine.pid,
    startTimeAtStart,
    startTimeAtEnd: processStartTime(engine.pid),
    countersAtStart: edgeAtStart.counters,
    countersAtEnd: edgeAtEnd.counters,
    died: context.serverDied(),
  };
  const reconciled = { cell: cellId(cell.key), ...reconcile(server, result.requests, engine.metricNames) };
  context.writer.event('reconciled', reconciled);
  reporter.emit({ kind: 'reconciled', ...reconciled });
  return writeCell(context, cell, plan, result, server, [edgeAtStart, edgeAtEnd], [anchorAtStart, anchorAtEnd]);
}

/** A prompt that is sent again can be served from a prefix cache: the capture and the audience are told. */
function sayRepeats(context: CellContext, cell: CellPlan, { repeatedPrompts, scheduledNs }: RequestPlan): void {
  if (repeatedPrompts === 0) return;
  const where = cellId(cell.key);
  const requests = scheduledNs.length;
  context.writer.event('prompts_repeat', { cell: where, requests, repeated: repeatedPrompts });
  const message = `${repeatedPrompts} of ${requests} requests repeat a prompt: the file has fewer than the load needs`;
  warn(
    context,
    where,
    'prompts_repeat',
    message,
    'A prefix cache may serve them: use a larger file or a shorter load.',
  );
}

async function playLoad(context: CellContext, cell: CellPlan, plan: RequestPlan): Promise<OpenLoadResult> {
  const { experiment, engine, origin, loadSignal, reporter } = context;
  const { load } = cell;
  const prepared = await prepareOpenLoad({
    plan,
    endpoint: engine.endpoint,
    dialect: dialectOfLoad(engine.dialect, load),
    ignoreEos: load.ignoreEos,
    workers: experiment.loadWorkers,
    originNs: origin.monotonicNs,
    warmupS: load.warmupS,
    windowS: load.windowS,
    tailS: load.tailS,
    drainS: load.drainS,
    expectedLatencyS: (experiment.slo.ttftMs + load.outputTokens * experiment.slo.tpotMs) / 1000,
    totalTimeoutMs: null,
    idleTimeoutMs: 60_000,
    signal: loadSignal,
    onProgress: (p) => reporter.emit({ kind: 'load-progress', cell: cellId(cell.key), ...p }),
  });
  try {
    return await prepared.start();
  } finally {
    await prepared.dispose();
  }
}

/** A scrape with nothing running or waiting, as far as the server gets there within the limit. */
async function takeEdge(context: CellContext, limitMs: number): Promise<Edge> {
  const names = context.engine.metricNames;
  const deadline = performance.now() + limitMs;
  for (;;) {
    const edge = await scrapeEdge(context);
    const busy = (edge.counters?.[names.running] ?? 0) + (edge.counters?.[names.waiting] ?? 0);
    if (edge.text === null || busy === 0 || performance.now() > deadline) return edge;
    await sleep(DRAIN_POLL_MS);
  }
}

async function scrapeEdge(context: CellContext): Promise<Edge> {
  const text = await context.engine.scrape(2_000);
  if (text === null) return { text, counters: null };
  const values = parsePrometheus(text);
  const counters: Record<string, number> = {};
  for (const name of Object.values(context.engine.metricNames)) {
    const value = sumSeries(values, name);
    if (value !== null) counters[name] = value;
  }
  return { text, counters };
}

async function writeCell(
  context: CellContext,
  cell: CellPlan,
  plan: RequestPlan,
  result: { requests: RequestTable; phases: LoadPhases; client: ClientEvidence; aborted: boolean },
  server: ServerEvidence,
  [edgeAtStart, edgeAtEnd]: readonly [Edge, Edge],
  [start, end]: readonly [Anchor, Anchor],
): Promise<CellFile> {
  const { experiment, session } = context;
  const margin = SAMPLE_MARGIN_S * 1e9;
  const kept: Interval = { startNs: result.phases.startNs - margin, endNs: result.phases.drainEndNs + margin };
  await waitUntil(context, kept.endNs, result.aborted);
  const gpu = context.sampler ? await context.sampler.slice(kept.startNs, kept.endNs) : null;
  const metrics = context.scraper.samples(kept.startNs, kept.endNs);
  const facts = {
    schema: CELL_SCHEMA,
    key: cell.key,
    synthetic: context.synthetic,
    ...cellStatus(context, server, result.aborted),
    load: cell.load,
    slo: experiment.slo,
    phases: result.phases,
    scheduleLabel: plan.label,
    scheduleSha256: plan.scheduleSha256,
    promptsSha256: plan.promptsSha256,
    anchors: { start, end },
    client: result.client,
    server,
    control: context.control,
    gpu: {
      kind: experiment.gpu.kind,
      samplePeriodNs: session ? session.samplePeriodMs * 1e6 : null,
      maxPowerW: session?.maxPowerW ?? null,
    },
  } as const;
  const judged = assessCell({
    facts,
    requests: result.requests,
    gpu,
    metrics,
    idleLoaded: context.idleLoaded(),
    idleBare: context.idleBare,
    pricePerHour: context.pricePerHour,
  });
  const file: CellFile = { ...facts, ...judged };
  await context.writer.writeCell({
    file,
    requests: result.requests,
    gpu,
    metrics,
    edges: { start: edgeAtStart.text, end: edgeAtEnd.text },
  });
  return file;
}

/** The sampler must run beyond the last edge; an aborted load is written at once. */
async function waitUntil(context: CellContext, atNs: number, aborted: boolean): Promise<void> {
  const waitMs = (atNs - context.origin.now()) / 1e6;
  if (!aborted && context.sampler && waitMs > 0) await sleep(waitMs);
}

function cellStatus(
  context: CellContext,
  server: ServerEvidence,
  aborted: boolean,
): Pick<CellFile, 'status' | 'statusReason'> {
  if (server.died !== null) return { status: 'failed', statusReason: server.died };
  if (context.signal.aborted) return { status: 'interrupted', statusReason: 'the run was stopped' };
  if (aborted) return { status: 'interrupted', statusReason: 'the load was stopped' };
  return { status: 'complete', statusReason: null };
}
