// report.md: the same answer, tables and figures as the page, short, for a terminal or a code host.

import { escapeMarkdown } from './escape.ts';
import { utc } from './format.ts';
import type { ReportFigures } from './html/page.ts';
import type { ReportModel } from './model.ts';
import { FORMULAS, NOT_MEASURED, verdictLine } from './prose.ts';
import { type ArmAnswer, answers, banners } from './summary.ts';
import { calibrationTable } from './tables/calibration.ts';
import { cellsTable } from './tables/cells.ts';
import { comparisonTable } from './tables/comparison.ts';
import { clientTable, outcomesTable } from './tables/requests.ts';
import { type Inline, type Table, textOf } from './tables/table.ts';
import { validityTable } from './tables/validity.ts';

function inline(item: Inline): string {
  const text = escapeMarkdown(textOf(item));
  return typeof item === 'string' ? text : `[${text}](report.html#${encodeURIComponent(item.anchor)})`;
}

/** The first cell of a row carries its link; the numbers beside it belong to the same place. */
const cellText = (item: Inline, at: number): string => (at === 0 ? inline(item) : escapeMarkdown(textOf(item)));

function tableLines(table: Table, marks: readonly string[]): string[] {
  const title = [...marks, table.title].map(escapeMarkdown).join(' · ');
  const header = `| ${table.columns.map((column) => escapeMarkdown(column.label)).join(' | ')} |`;
  const rule = `| ${table.columns.map((column) => (column.align === 'right' ? '--:' : '---')).join(' | ')} |`;
  const rows = table.rows.map((row) => `| ${row.cells.map(cellText).join(' | ')} |`);
  return [`**${title}**`, '', header, rule, ...rows, '', ...table.notes.flatMap((note) => [escapeMarkdown(note), ''])];
}

function armLines(arm: ArmAnswer): string[] {
  const name = `**${escapeMarkdown(arm.arm)}**`;
  if (arm.empty !== null) return [`- ${name}: ${escapeMarkdown(arm.empty)}`];
  return arm.cells.map((cell) => {
    const where = escapeMarkdown([cell.where, ...cell.marks].join(' · '));
    const figures = cell.figures.map(
      ({ label, value, limit }) =>
        `${escapeMarkdown(label)} ${inline(value)}${limit === null ? '' : ` (${escapeMarkdown(limit)})`}`,
    );
    return `- ${name}, ${where}: **${escapeMarkdown(cell.badge)}**; ${figures.join('; ')}.${escapeMarkdown(cell.heldBack)}`;
  });
}

function figureLines(figures: ReportFigures): string[] {
  const drawn = figures.drawn.flatMap(({ number, spec }) => {
    const caption = escapeMarkdown(`Figure ${number}. ${spec.title}${spec.cell === null ? '' : ` (${spec.subtitle})`}`);
    return [`![${escapeMarkdown(spec.alt)}](figures/${spec.name}.png)`, '', caption, ''];
  });
  const skipped = figures.skipped.map((item) => `- ${escapeMarkdown(item.name)}: ${escapeMarkdown(item.reason)}`);
  return [...drawn, ...(skipped.length === 0 ? [] : ['Not drawn, because the input is missing:', '', ...skipped, ''])];
}

function headLines(model: ReportModel): string[] {
  const { manifest, marks } = model;
  const engine = `engine ${manifest.engine.kind} ${manifest.engine.version ?? ''}`.trim();
  const facts = [manifest.runId, utc(manifest.origin.wallMs), engine, `energy ${manifest.energy}`];
  return [
    `# ${[...marks, manifest.experiment].map(escapeMarkdown).join(' · ')}`,
    '',
    escapeMarkdown(facts.join(' · ')),
    '',
    ...banners(model).flatMap(({ title, text }) => [`> **${escapeMarkdown(title)}** ${escapeMarkdown(text)}`, '']),
  ];
}

function groundLines(): string[] {
  return [
    ...FORMULAS.map(({ name, text }) => `- **${escapeMarkdown(name)}**: ${escapeMarkdown(text)}`),
    '',
    'Not measured:',
    '',
    ...NOT_MEASURED.map((item) => `- ${escapeMarkdown(item)}`),
    '',
    'Check every stored number and checksum with `tokbench verify DIR`. Details of each cell are in [report.html](report.html).',
  ];
}

/** The whole file. Foreign text is escaped; figures and details are linked by relative paths. */
export function markdownText(model: ReportModel, figures: ReportFigures): string {
  const { marks } = model;
  const comparison = comparisonTable(model);
  const ratios = comparison === null ? [verdictLine(model.manifest.repeats), ''] : tableLines(comparison, marks);
  const checks = [validityTable(model), outcomesTable(model), clientTable(model), calibrationTable(model)];
  const lines = [
    ...headLines(model),
    ...['## Answer', '', ...answers(model).flatMap(armLines), '', ...ratios],
    ...['## Cells', '', ...tableLines(cellsTable(model), marks)],
    ...['## Figures', '', ...figureLines(figures)],
    ...['## Validity, requests, client', '', ...checks.flatMap((table) => tableLines(table, marks))],
    ...['## What the numbers mean', '', ...groundLines()],
  ];
  return `${lines.join('\n')}\n`;
}
