// One cell: prepare the load, play it, take the edges, judge it, and write it down.

import { assessCell } from '../analysis/cell.ts';
import { edgeCounters } from '../analysis/edge-counters.ts';
import { reconcile } from '../analysis/reconcile.ts';
import { scheduleSha256 } from '../analysis/verify/schedule.ts';
import { redactServerText } from '../capture/redact.ts';
import {
  type Anchor,
  CELL_SCHEMA,
  type CellFile,
  type ControlEvidence,
  cellId,
  type Interval,
  type LoadSpec,
  NS_PER_S,
  type RequestTable,
  type ScheduleTable,
  type ServerEvidence,
  scheduleOf,
  sleep,
} from '../core/index.ts';
import { dialectOfLoad } from '../engines/driver.ts';
import type { RunningEngine } from '../engines/engine.ts';
import { processStartTime } from '../engines/proc.ts';
import { type LoadResult, prepareLoad } from '../loadgen/load.ts';
import { planLoad, type RequestPlan } from '../workloads/plan.ts';
import { readTrace } from '../workloads/trace.ts';
import { type LaunchContext, warn } from './context.ts';
import type { CellPlan } from './plan.ts';

/** /metrics samples are kept this far beyond the load on both sides, GPU samples at least as far. */
const SCRAPE_MARGIN_S = 1.5;
const DRAIN_POLL_MS = 200;
const DRAIN_LIMIT_MS = 5_000;
/** Nobody watches over a server that is not ours: a request that takes longer than this is given up. */
const ATTACHED_TOTAL_TIMEOUT_MS = 600_000;
/** When all of so many first requests were refused as wrong, the rest would only cost money. */
const REFUSED_AT_ONCE = 20;
const SAID_LIMIT = 500;

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
  const plan = planLoad({
    seed: experiment.seed,
    repeat: cell.key.repeat,
    load: cell.load,
    ordinal: cell.ordinal,
    attempt: cell.key.attempt,
    tokenIds: experiment.model.tokenIds,
    trace: cell.load.trace && readTrace(cell.load.trace.path),
    material: context.prompts.of(cell.load),
  });
  const startTimeAtStart = startTimeOf(engine.pid);
  const edgeAtStart = await takeEdge(context, DRAIN_LIMIT_MS);
  const anchorAtStart = origin.anchor();
  const refused = new AbortController();
  const result = await playLoad(context, cell, plan, refused);
  sayRepeats(context, cell, plan);
  const anchorAtEnd = origin.anchor();
  const edgeAtEnd = context.loadSignal.aborted ? await scrapeEdge(context) : await takeEdge(context, DRAIN_LIMIT_MS);
  const server: ServerEvidence = {
    pid: engine.pid,
    startTimeAtStart,
    startTimeAtEnd: startTimeOf(engine.pid),
    countersAtStart: edgeAtStart.counters,
    countersAtEnd: edgeAtEnd.counters,
    died: context.serverDied(),
  };
  const reconciled = { cell: cellId(cell.key), ...reconcile(server, result.requests, engine.metricNames) };
  context.writer.event('reconciled', reconciled);
  reporter.emit({ kind: 'reconciled', ...reconciled });
  const all = refused.signal.aborted ? refusalOf(result.requests) : null;
  return writeCell(
    context,
    cell,
    plan,
    { ...result, refusal: all },
    server,
    [edgeAtStart, edgeAtEnd],
    [anchorAtStart, anchorAtEnd],
  );
}

const startTimeOf = (pid: number | null): string | null => (pid === null ? null : processStartTime(pid));

/** A prompt that is sent again can be served from a prefix cache: the capture and the audience are told. */
function sayRepeats(context: CellContext, cell: CellPlan, { repeatedPrompts, scheduledNs }: RequestPlan): void {
  // A closed loop leaves most of its planned requests unsent: those have no arrival.
  const arrivals = (from: number) => scheduledNs.subarray(from).filter((atNs) => !Number.isNaN(atNs)).length;
  const repeated = repeatedPrompts === 0 ? 0 : arrivals(scheduledNs.length - repeatedPrompts);
  if (repeated === 0) return;
  const where = cellId(cell.key);
  const requests = arrivals(0);
  context.writer.event('prompts_repeat', { cell: where, requests, repeated });
  const message = `${repeated} of ${requests} requests repeat a prompt: the file has fewer than the load needs`;
  warn(
    context,
    where,
    'prompts_repeat',
    message,
    'A prefix cache may serve them: use a larger file or a shorter load.',
  );
}

async function playLoad(
  context: CellContext,
  cell: CellPlan,
  plan: RequestPlan,
  refused: AbortController,
): Promise<LoadResult> {
  const { experiment, engine, origin, loadSignal, reporter } = context;
  const { load } = cell;
  const prepared = await prepareLoad({
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
    closed: slotsOf(load),
    expectedLatencyS: (experiment.slo.ttftMs + load.outputTokens * experiment.slo.tpotMs) / 1000,
    totalTimeoutMs: experiment.engine.kind === 'openai' ? ATTACHED_TOTAL_TIMEOUT_MS : null,
    idleTimeoutMs: 60_000,
    signal: AbortSignal.any([loadSignal, refused.signal]),
    onProgress: (p) => {
      if (p.finished >= REFUSED_AT_ONCE && p.refused === p.finished) refused.abort(p.refused);
      reporter.emit({ kind: 'load-progress', cell: cellId(cell.key), ...p });
    },
    ...(context.inject === undefined ? {} : { inject: context.inject }),
  });
  try {
    return await prepared.start();
  } finally {
    await prepared.dispose();
  }
}

const slotsOf = ({ concurrency, thinkS, requests }: LoadSpec) =>
  concurrency === null
    ? undefined
    : { slots: concurrency, thinkNs: Math.round(thinkS * NS_PER_S), limited: requests !== null };

/** The arrivals of a closed loop are a result: what is kept and hashed is what they were. */
function playedSchedule(load: LoadSpec, plan: RequestPlan, { requests, phases }: LoadResult): ScheduleTable {
  if (load.kind === 'closed') return scheduleOf(requests, phases.startNs);
  const { scheduledNs, promptTokens, maxTokens } = plan;
  return { count: scheduledNs.length, scheduledNs, promptTokens, requestedTokens: maxTokens };
}

/** Why a load was given up in which the server refused every request as wrong. */
function refusalOf({ httpStatus, errorText }: RequestTable): string {
  const row = httpStatus.findIndex((status) => status >= 400);
  const said = (errorText[row] ?? 'no reason given').slice(0, SAID_LIMIT);
  return `the server refused every request so far as wrong: HTTP ${httpStatus[row]}: ${redactServerText(said)}`;
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
  return { text, counters: edgeCounters(text, context.engine.metricNames) };
}

async function writeCell(
  context: CellContext,
  cell: CellPlan,
  plan: RequestPlan,
  result: LoadResult & { readonly refusal: string | null },
  server: ServerEvidence,
  [edgeAtStart, edgeAtEnd]: readonly [Edge, Edge],
  [start, end]: readonly [Anchor, Anchor],
): Promise<CellFile> {
  const { experiment, energy } = context;
  const margin = (energy?.marginS ?? SCRAPE_MARGIN_S) * 1e9;
  const kept: Interval = { startNs: result.phases.startNs - margin, endNs: result.phases.drainEndNs + margin };
  await waitUntil(context, kept.endNs, result.aborted);
  const gpu = context.sampler ? await context.sampler.slice(kept.startNs, kept.endNs) : null;
  const others = await context.otherScopes.samples(kept.startNs, kept.endNs, start);
  const metrics = [...context.scraper.samples(kept.startNs, kept.endNs), ...others];
  const surroundings = (await context.watch?.evidence()) ?? null;
  const schedule = playedSchedule(cell.load, plan, result);
  const facts = {
    schema: CELL_SCHEMA,
    key: cell.key,
    synthetic: context.synthetic,
    ...cellStatus(context, server, result),
    load: cell.load,
    slo: experiment.slo,
    phases: result.phases,
    scheduleLabel: plan.label,
    scheduleSha256: scheduleSha256(schedule.scheduledNs, 0),
    promptsSha256: plan.promptsSha256,
    anchors: { start, end },
    client: result.client,
    server,
    control: context.control,
    gpu: {
      kind: experiment.gpu.kind,
      samplePeriodNs: energy ? energy.samplePeriodMs * 1e6 : null,
      maxPowerW: energy?.maxPowerW ?? null,
      ...(energy ? { counter: energy.counter } : {}),
    },
    surroundings,
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
    schedule,
    gpu,
    metrics,
    edges: { start: edgeAtStart.text, end: edgeAtEnd.text },
  });
  context.onCell?.(file, result.requests, context.origin.monotonicNs);
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
  { aborted, refusal }: { readonly aborted: boolean; readonly refusal: string | null },
): Pick<CellFile, 'status' | 'statusReason'> {
  if (server.died !== null) return { status: 'failed', statusReason: server.died };
  if (context.signal.aborted) return { status: 'interrupted', statusReason: 'the run was stopped' };
  if (refusal !== null) return { status: 'failed', statusReason: refusal };
  if (aborted) return { status: 'interrupted', statusReason: 'the load was stopped' };
  return { status: 'complete', statusReason: null };
}
