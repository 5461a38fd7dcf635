// Which validity rules ran on which cells, and what they found: hits first, then what could not run, then passes.

import type { RuleOutcome, RuleStatus } from '../../core/index.ts';
import { number } from '../format.ts';
import type { CellView, ReportModel } from '../model.ts';
import { type Inline, left, type Row, type Table } from './table.ts';

const ORDER: readonly RuleStatus[] = ['hit', 'not_evaluated', 'not_applicable', 'pass'];
const ACT: Readonly<Record<RuleOutcome['act'], string>> = {
  X: 'excludes the cell',
  L: 'excludes the cell and the rest of the launch',
  W: 'warns',
};
const STATUS: Readonly<Record<RuleStatus, string>> = {
  hit: 'HIT',
  not_evaluated: 'not evaluated',
  not_applicable: 'not applicable',
  pass: 'passed',
};

interface Found {
  readonly rule: RuleOutcome;
  readonly views: readonly CellView[];
}

const ruleNumber = (rule: string): number => Number.parseInt(rule.slice(1), 10) || 0;

/** Hits stay one per cell, with their evidence; other outcomes of the same rule, code and text share a row. */
function grouped(model: ReportModel): Found[] {
  const groups = new Map<string, { rule: RuleOutcome; views: CellView[] }>();
  for (const view of model.cells) {
    for (const rule of view.cell.rules) {
      const own = rule.status === 'hit' ? view.anchor : '';
      const text = rule.status === 'pass' ? '' : rule.text;
      const key = JSON.stringify([rule.rule, rule.code, rule.status, text, own]);
      const group = groups.get(key) ?? { rule, views: [] };
      group.views.push(view);
      groups.set(key, group);
    }
  }
  return [...groups.values()].toSorted(
    (a, b) =>
      ORDER.indexOf(a.rule.status) - ORDER.indexOf(b.rule.status) ||
      ruleNumber(a.rule.rule) - ruleNumber(b.rule.rule) ||
      a.rule.code.localeCompare(b.rule.code),
  );
}

/** `{a: 1, b: 'x'}` as `a 1, b x`; nested values as JSON. */
export function evidenceText(evidence: Readonly<Record<string, unknown>>): string {
  const shown = Object.entries(evidence).filter(([, value]) => value !== null && value !== undefined);
  return shown.map(([key, value]) => `${key} ${valueText(value)}`).join(', ');
}

function valueText(value: unknown): string {
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : number(value, 4);
  if (typeof value === 'string' || typeof value === 'boolean') return String(value);
  return JSON.stringify(value, (_key, item) => (item === null ? 'none' : item)) ?? 'none';
}

function cellsOf(found: Found, total: number): Inline {
  const [only] = found.views;
  if (found.views.length === 1 && only !== undefined) return { text: only.title, anchor: only.anchor };
  return found.views.length === total ? 'all cells' : found.views.map((view) => view.title).join('; ');
}

function rowOf(found: Found, total: number): Row {
  const { rule } = found;
  const evidence = rule.status === 'hit' ? evidenceText(rule.evidence) : '';
  const why = rule.status === 'pass' ? '' : [rule.text, evidence].filter((text) => text !== '').join(' · ');
  const tone = rule.status === 'hit' ? (rule.act === 'W' ? 'warn' : 'bad') : 'muted';
  return {
    cells: [
      rule.rule,
      rule.code,
      STATUS[rule.status],
      rule.status === 'hit' ? ACT[rule.act] : '',
      cellsOf(found, total),
      why,
    ],
    tone: rule.status === 'pass' ? 'good' : tone,
  };
}

export function validityTable(model: ReportModel): Table {
  const found = grouped(model);
  const hits = found.filter((item) => item.rule.status === 'hit').length;
  const ran = new Set(found.filter((item) => ['hit', 'pass'].includes(item.rule.status)).map((item) => item.rule.rule));
  return {
    title: `Validity rules (${hits} hit${hits === 1 ? '' : 's'})`,
    columns: [left('rule'), left('code'), left('result'), left('effect'), left('cells'), left('why')],
    rows: found.map((item) => rowOf(item, model.cells.length)),
    notes: [
      `Rules that ran: ${[...ran].toSorted((a, b) => ruleNumber(a) - ruleNumber(b)).join(', ') || 'none'}. A missed SLO never makes a cell invalid.`,
      ...asymmetry(model),
    ],
  };
}

/** METHOD 7's symmetry check: arms that lose more cells than others. */
function asymmetry(model: ReportModel): string[] {
  const lost = model.manifest.arms.map(
    (arm) => model.cells.filter((view) => view.cell.key.arm === arm && !view.cell.valid).length,
  );
  if (lost.length < 2 || Math.max(...lost) - Math.min(...lost) <= 1) return [];
  return [
    `Exclusions differ between arms by more than one cell (${model.manifest.arms.map((arm, at) => `${arm}: ${lost[at]}`).join(', ')}): comparisons may be biased.`,
  ];
}
