// The form of a validity rule, and the words in which it answers (METHOD 7).

import type { CellFile, GpuSampleColumn, MetricSample, RuleAct, RuleStatus, WindowEnergy } from '../../core/index.ts';
import type { GpuWindow } from '../gpu-window.ts';
import type { MeasuredRequests } from '../request-metrics.ts';
import type { WindowLatencies } from '../window-latency.ts';
import type { WindowCounts } from '../window-metrics.ts';

/** What a cell is judged by: its file without the judgement. */
export type CellFacts = Omit<CellFile, 'metrics' | 'windowEnergy' | 'boards' | 'rules' | 'valid' | 'labels'>;

export interface RuleInput {
  readonly facts: CellFacts;
  readonly requests: MeasuredRequests;
  /** Rows of the requests that arrive in the window. */
  readonly arrivals: readonly number[];
  readonly counts: WindowCounts;
  readonly latencies: WindowLatencies;
  readonly meanInFlight: number;
  /** Scrapes of the server's metrics through the load. */
  readonly scrapes: readonly MetricSample[];
  /** The board under judgement. Null: no samples were taken, or they cannot be read without a period and a power limit. */
  readonly gpu: GpuWindow | null;
  /** Its number. */
  readonly board: number;
  /** All boards whose energy is added up. */
  readonly boards: readonly GpuWindow[];
  /** Of all boards; null once one of V7-V9 has been hit, or when the preflight refused the counter. */
  readonly energy: WindowEnergy | null;
}

export type Evidence = Readonly<Record<string, unknown>>;

export interface Finding {
  readonly status: RuleStatus;
  readonly evidence: Evidence;
  readonly text: string;
  /** Where a rule has several codes or acts, the one that was hit. */
  readonly code?: string;
  readonly act?: RuleAct;
}

export interface Rule {
  readonly rule: string;
  readonly code: string;
  readonly act: RuleAct;
  /** Asks about the GPU: not applicable to a cell without one. */
  readonly needsGpu?: true;
  /** Needs the window's energy: not evaluated once V7-V9 have taken it away. */
  readonly needsEnergy?: true;
  /** Judges the counter: not evaluated once the preflight has refused it. */
  readonly needsCounter?: true;
  /** Asked of every board by itself; the worst answer counts. */
  readonly perBoard?: true;
  /** Asks what only the machine of the board can tell: not applicable to the exporter of another one. */
  readonly needsOwnBoard?: true;
  /** The column that it reads: not applicable to a source that never fills it. */
  readonly needsColumn?: GpuSampleColumn;
  check(input: RuleInput): Finding;
}

export const pass = (evidence: Evidence, text = 'within limits'): Finding => ({ status: 'pass', evidence, text });

export const hit = (
  evidence: Evidence,
  text: string,
  as: { readonly code?: string; readonly act?: RuleAct } = {},
): Finding => ({ status: 'hit', evidence, text, ...as });

/** The rule's input is missing: a hit that excludes. */
export const noEvidence = (text: string, evidence: Evidence = {}): Finding =>
  hit(evidence, text, { code: 'no_evidence', act: 'X' });

export const notApplicable = (text: string): Finding => ({ status: 'not_applicable', evidence: {}, text });
export const notEvaluated = (text: string): Finding => ({ status: 'not_evaluated', evidence: {}, text });

/** `12.3 %` of a share, for a person. */
export const percent = (share: number): string => `${Number((share * 100).toPrecision(3))} %`;

/** `count` of `total` as a share; 0 of nothing is 0. */
export const shareOf = (count: number, total: number): number => (total === 0 ? 0 : count / total);

/** What one board left unjudged is not passed because another board passes. */
const SEVERITY = ['not_applicable', 'pass', 'not_evaluated', 'W', 'X', 'L'];

/** The gravest of the answers that a rule gives to several boards, with the number of its board; of one board just that. */
export function worstFinding(act: RuleAct, answers: readonly Finding[]): Finding {
  const gravity = (answer: Finding) => SEVERITY.indexOf(answer.status === 'hit' ? (answer.act ?? act) : answer.status);
  const worst = answers.reduce((a, b) => (gravity(b) > gravity(a) ? b : a));
  if (answers.length === 1) return worst;
  const board = answers.indexOf(worst);
  return { ...worst, evidence: { board, ...worst.evidence }, text: `board ${board}: ${worst.text}` };
}
