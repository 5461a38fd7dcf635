// What the report shows, gathered from a capture once: cells with their traces, names, anchors and marks.

import {
  type CalibrationFile,
  type CellFile,
  cellId,
  type GpuSampleTable,
  type Interval,
  type LaunchFile,
  launchId,
  type ManifestFile,
  type MetricSample,
  type NamedInterval,
  NS_PER_S,
  VLLM_METRICS,
} from '../core/index.ts';
import { plainText, slug } from './escape.ts';
import { type GpuTrace, gpuTrace } from './gpu-trace.ts';
import type { ReportSource } from './source.ts';
import { inFlight, type RequestPoint, requestPoints, type Step } from './traces.ts';

/** A named stretch in seconds since the start of the load. */
export interface Band {
  readonly name: string;
  readonly fromS: number;
  readonly toS: number;
}

export interface CellView {
  readonly cell: CellFile;
  readonly id: string;
  /** Safe as an anchor and as part of a file name; unique in the report. */
  readonly anchor: string;
  /** `baseline · l1 · repeat 1`. */
  readonly title: string;
  /** Words that stand beside every figure of the cell: `shortened`, `short`, `INVALID (V12)`. */
  readonly marks: readonly string[];
  readonly bands: readonly Band[];
  readonly requests: readonly RequestPoint[];
  readonly inFlight: readonly Step[];
  readonly running: readonly Step[];
  readonly waiting: readonly Step[];
  readonly gpu: GpuTrace | null;
}

export interface ReportModel {
  readonly dir: string;
  readonly manifest: ManifestFile;
  readonly launches: readonly LaunchFile[];
  readonly cells: readonly CellView[];
  /** The environment bundle; null when the capture has none. */
  readonly environment: Readonly<Record<string, unknown>> | null;
  /** What the client proved about itself; null when the capture has nothing of it. */
  readonly calibration: CalibrationFile | null;
  /** Words of the whole run: `SYNTHETIC`, `shortened`. They open every table title and stand in every image. */
  readonly marks: readonly string[];
}

const IN_FLIGHT_STEPS = 1500;
const LEAD_PARTS = ['soak', 'idle'] as const;

/** Codes of the rules that exclude the cell, and of a load that did not complete. */
export function exclusions(cell: CellFile): string[] {
  const rules = cell.rules.filter((rule) => rule.status === 'hit' && rule.act !== 'W').map((rule) => rule.rule);
  return cell.status === 'complete' ? rules : [...rules, cell.status];
}

function marksOf(cell: CellFile): string[] {
  if (cell.valid) return [...cell.labels];
  return [...cell.labels, `INVALID (${exclusions(cell).join(', ') || 'see rules'})`];
}

/** Soak and idle of a launch lead to its first load: they are shown there, where their samples were kept. */
function leadIn(cell: CellFile, launch: LaunchFile | undefined): NamedInterval[] {
  if (launch === undefined || (launch.loadOrder[0] ?? cell.key.load) !== cell.key.load) return [];
  return launch.phases.filter((phase) => phase.endNs <= cell.phases.startNs && /soak|idle/i.test(phase.name));
}

function bandsOf(cell: CellFile, before: readonly NamedInterval[]): Band[] {
  const { startNs, window, tailEndNs, drainEndNs } = cell.phases;
  const own: NamedInterval[] = [
    { name: 'warm-up', startNs, endNs: window.startNs },
    { name: 'window', ...window },
    { name: 'tail', startNs: window.endNs, endNs: tailEndNs },
    { name: 'drain', startNs: tailEndNs, endNs: drainEndNs },
  ];
  return [...before, ...own]
    .filter((phase) => phase.endNs > phase.startNs)
    .map((phase) => ({
      name: plainText(phase.name),
      fromS: (phase.startNs - startNs) / NS_PER_S,
      toS: (phase.endNs - startNs) / NS_PER_S,
    }));
}

/** The cell's GPU samples, led by those of soak and idle where the capture has them. */
async function gpuTables(source: ReportSource, cell: CellFile, withLead: boolean): Promise<GpuSampleTable[]> {
  if (cell.gpu.kind === 'none') return [];
  const parts = withLead ? await Promise.all(LEAD_PARTS.map((part) => source.launchPart(cell.key, part))) : [];
  const tables = [...parts.map((part) => part?.gpu ?? null), await source.gpuSamples(cell.key)];
  return tables.filter((table) => table !== null);
}

/** Sum over label sets of one gauge per scrape, as steps. */
function gauge(samples: readonly MetricSample[], name: string, span: Interval, startNs: number): Step[] {
  const sums = new Map<number, number>();
  for (const sample of samples) {
    if (sample.series !== name && !sample.series.startsWith(`${name}{`)) continue;
    if (sample.atNs < span.startNs || sample.atNs > span.endNs) continue;
    sums.set(sample.atNs, (sums.get(sample.atNs) ?? 0) + sample.value);
  }
  return [...sums.entries()]
    .toSorted((a, b) => a[0] - b[0])
    .map(([atNs, value]) => ({ atS: (atNs - startNs) / NS_PER_S, value }));
}

async function viewOf(
  source: ReportSource,
  cell: CellFile,
  anchor: string,
  launch: LaunchFile | undefined,
): Promise<CellView> {
  const { startNs, window, drainEndNs } = cell.phases;
  const lead = leadIn(cell, launch);
  const tables = await gpuTables(source, cell, lead.length > 0);
  const bands = bandsOf(cell, tables.length > 1 ? lead : []);
  const load = { startNs, endNs: drainEndNs };
  const shown = { startNs: startNs + Math.min(0, ...bands.map((band) => band.fromS)) * NS_PER_S, endNs: drainEndNs };
  const requests = await source.requests(cell.key);
  const metrics = await source.metricSamples(cell.key);
  return {
    cell,
    id: cellId(cell.key),
    anchor,
    title: plainText(`${cell.key.arm} · ${cell.key.load} · repeat ${cell.key.repeat}${attemptOf(cell)}`),
    marks: marksOf(cell),
    bands,
    requests: requestPoints(requests, startNs, window, cell.slo),
    inFlight: inFlight(requests, startNs, drainEndNs, IN_FLIGHT_STEPS),
    running: gauge(metrics, VLLM_METRICS.running, load, startNs),
    waiting: gauge(metrics, VLLM_METRICS.waiting, load, startNs),
    gpu: gpuTrace(tables, shown, startNs, cell.windowEnergy?.powerField ?? null),
  };
}

const attemptOf = (cell: CellFile): string => (cell.key.attempt === 1 ? '' : `, attempt ${cell.key.attempt}`);

function uniqueAnchors(cells: readonly CellFile[]): string[] {
  const seen = new Map<string, number>();
  return cells.map((cell) => {
    const name = slug(cellId(cell.key));
    const before = seen.get(name) ?? 0;
    seen.set(name, before + 1);
    return before === 0 ? name : `${name}-${before + 1}`;
  });
}

/** Order of the config: arms, then loads, then repeats; what the manifest does not name comes last. */
function inConfigOrder(cells: readonly CellFile[], manifest: ManifestFile): CellFile[] {
  const rank = (list: readonly string[], id: string) => (list.includes(id) ? list.indexOf(id) : list.length);
  return cells.toSorted(
    (a, b) =>
      rank(manifest.loads, a.key.load) - rank(manifest.loads, b.key.load) ||
      rank(manifest.arms, a.key.arm) - rank(manifest.arms, b.key.arm) ||
      a.key.repeat - b.key.repeat ||
      a.key.attempt - b.key.attempt,
  );
}

/** Reads everything that the report shows. One cell's raw rows at a time are held. */
export async function reportModel(source: ReportSource): Promise<ReportModel> {
  const { manifest } = source;
  const launches = await source.launches();
  const cells = inConfigOrder(await source.cells(), manifest);
  const anchors = uniqueAnchors(cells);
  const views: CellView[] = [];
  for (const [at, cell] of cells.entries()) {
    const launch = launches.find((item) => launchId(item.key) === launchId(cell.key));
    views.push(await viewOf(source, cell, anchors[at]!, launch));
  }
  const synthetic = manifest.synthetic || cells.some((cell) => cell.synthetic);
  const shortened = manifest.profile === 'shortened';
  return {
    dir: source.dir,
    manifest,
    launches,
    cells: views,
    environment: (await source.environment())?.facts ?? null,
    calibration: await source.calibration(),
    marks: [...(synthetic ? ['SYNTHETIC'] : []), ...(shortened ? ['shortened'] : [])],
  };
}
