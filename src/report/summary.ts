// The answer first: for every arm, in plain words, what it served, whether it kept the promise and what it cost in energy.

import { bottleneck, ratesText } from '../analysis/bottleneck.ts';
import type { LatencySummary } from '../core/index.ts';
import { count, p99Notes, setting, withUnit } from './format.ts';
import { type CellView, exclusions, type ReportModel } from './model.ts';
import { baselineArm } from './tables/comparison.ts';
import type { Inline } from './tables/table.ts';
import { energyPerToken, promise } from './words.ts';

export interface CellAnswer {
  readonly tone: 'good' | 'bad' | 'warn';
  /** `keeps the promise`, `breaks the promise`, `INVALID (V12)`. */
  readonly badge: string;
  readonly where: string;
  readonly marks: readonly string[];
  readonly figures: readonly { readonly label: string; readonly value: Inline; readonly limit: string | null }[];
  readonly sentence: readonly Inline[];
  /** What held the load back, with the three rates; empty when nothing did. */
  readonly heldBack: string;
}

export interface ArmAnswer {
  readonly arm: string;
  readonly isBaseline: boolean;
  readonly cells: readonly CellAnswer[];
  /** Why an arm has no cell at all; null when it has. */
  readonly empty: string | null;
}

function tone(view: CellView): CellAnswer['tone'] {
  if (!view.cell.valid) return 'bad';
  return view.cell.metrics.feasible === true ? 'good' : 'warn';
}

function figuresOf(view: CellView): CellAnswer['figures'] {
  const { metrics, slo } = view.cell;
  const link = (text: string): Inline => ({ text, anchor: view.anchor });
  return [
    { label: 'goodput', value: link(withUnit(metrics.goodputTokPerS, 'tok/s')), limit: null },
    { label: 'p99 TTFT', value: link(withUnit(metrics.ttft.p99Ms, 'ms')), limit: limitText(slo.ttftMs, metrics.ttft) },
    { label: 'p99 TPOT', value: link(withUnit(metrics.tpot.p99Ms, 'ms')), limit: limitText(slo.tpotMs, metrics.tpot) },
    { label: 'energy', value: link(energyPerToken(view.cell)), limit: null },
  ];
}

function limitText(limitMs: number, summary: LatencySummary): string {
  return [`limit ${setting(limitMs)} ms`, ...p99Notes(summary)].join(' · ');
}

function offered({ load }: CellView['cell']): string {
  return load.rate === null ? `With ${load.concurrency} slots` : `At ${setting(load.rate)} requests per second`;
}

function sentenceOf(view: CellView): Inline[] {
  const { metrics } = view.cell;
  const link = (text: string): Inline => ({ text, anchor: view.anchor });
  const judged = view.cell.valid
    ? ''
    : `This cell is invalid (${exclusions(view.cell).join(', ') || 'see rules'}): do not compare it. `;
  return [
    `${judged}${offered(view.cell)} it ${promise(view.cell)}: `,
    link(`${count(metrics.attained)} of ${count(metrics.arrivals)}`),
    ' requests of the window met both limits.',
  ];
}

/** Why fewer requests completed than were offered, with the three rates. */
function heldBack({ cell }: CellView): string {
  const cause = bottleneck(cell);
  return cause === null
    ? ''
    : ` ${cause.text.charAt(0).toUpperCase()}${cause.text.slice(1)} (${ratesText(cell.metrics)}).`;
}

function answer(view: CellView): CellAnswer {
  const { key, valid } = view.cell;
  return {
    tone: tone(view),
    badge: valid ? promise(view.cell) : `INVALID (${exclusions(view.cell).join(', ') || 'see rules'})`,
    where: `load ${key.load}, repeat ${key.repeat}${key.attempt === 1 ? '' : `, attempt ${key.attempt}`}`,
    marks: view.cell.labels,
    figures: figuresOf(view),
    sentence: sentenceOf(view),
    heldBack: heldBack(view),
  };
}

function emptyReason(model: ReportModel, arm: string): string {
  const launches = model.launches.filter((launch) => launch.key.arm === arm);
  const failure = launches.find((launch) => launch.failure !== null)?.failure;
  if (failure) return `No cell: ${failure.message} ${failure.advice}`.trim();
  return launches.length === 0
    ? `No cell: the run ended (${model.manifest.status}) before this arm was launched.`
    : 'No cell was finished.';
}

/** One answer per arm of the config, in its order. */
export function answers(model: ReportModel): ArmAnswer[] {
  const baseline = baselineArm(model);
  return model.manifest.arms.map((arm) => {
    const cells = model.cells.filter((view) => view.cell.key.arm === arm).map(answer);
    return { arm, isBaseline: arm === baseline, cells, empty: cells.length > 0 ? null : emptyReason(model, arm) };
  });
}

export interface Banner {
  readonly tone: 'bad' | 'warn';
  readonly title: string;
  readonly text: string;
}

const UNFINISHED = {
  running: 'The run was killed, or it is still going.',
  failed: 'Something failed on the way.',
  interrupted: 'The run was stopped before its end.',
} as const;

/** What must be known before any number is read. */
export function banners(model: ReportModel): Banner[] {
  const { manifest } = model;
  const list: Banner[] = [];
  if (model.marks.includes('SYNTHETIC'))
    list.push({
      tone: 'bad',
      title: 'SYNTHETIC',
      text: 'Made in the simulated world (a mock engine, and a simulated GPU for power and energy). The numbers show how the tool works and say nothing about real hardware.',
    });
  if (manifest.profile === 'shortened')
    list.push({
      tone: 'warn',
      title: 'shortened',
      text: `Phases below the method's minima: ${manifest.shortened.join(', ') || 'see the config'}. No registered hypothesis is evaluated on such a run (not_evaluable: shortened).`,
    });
  if (manifest.status !== 'complete')
    list.push({
      tone: 'bad',
      title: manifest.status === 'running' ? 'run unfinished' : `run ${manifest.status}`,
      text: `${UNFINISHED[manifest.status]} ${finished(model)} of ${manifest.plannedCells.length} planned cells are complete.`,
    });
  for (const failure of manifest.failures)
    list.push({ tone: 'bad', title: failure.code, text: `${failure.where}: ${failure.message}` });
  list.push(...attachedBanners(model));
  if (manifest.energy === 'none')
    list.push({
      tone: 'warn',
      title: 'energy: none',
      text: 'There was no GPU to measure. Latency and throughput stand; every energy figure is absent and none is estimated.',
    });
  return list;
}

/** A server that was running already: what it cannot tell, and how far its identity was checked. */
function attachedBanners(model: ReportModel): Banner[] {
  const facts = model.launches.map((launch) => launch.effective).filter((effective) => effective['attached'] === true);
  const list: Banner[] = [];
  if (facts.some((effective) => String(effective['certificate']).startsWith('NOT VERIFIED'))) {
    list.push({
      tone: 'bad',
      title: 'certificate not verified',
      text: 'The server was reached with --insecure: nothing proves that it is the one that its address names.',
    });
  }
  const unknown = new Set(facts.flatMap((effective) => (effective['cannotTell'] ?? []) as string[]));
  if (unknown.size > 0) {
    const rules = model.cells.some((view) => view.cell.labels.includes('no_server_metrics'))
      ? ' V17-V19 could not all be asked (no_server_metrics): whether prompts came from a cache, requests were preempted or the server restarted is for you to judge.'
      : '';
    list.push({
      tone: 'warn',
      title: 'attached server',
      text: `It was running already, and does not tell: ${[...unknown].join('; ')}.${rules}`,
    });
  }
  return list;
}

const finished = (model: ReportModel): number => model.cells.filter((view) => view.cell.status === 'complete').length;
