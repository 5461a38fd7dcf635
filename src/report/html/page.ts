// report.html: one file without network or script. The answer comes first, then ratios, cells, rules and the ground below.

import { escapeHtml } from '../escape.ts';
import type { SkippedFigure } from '../figures/spec.ts';
import { utc } from '../format.ts';
import type { CellView, ReportModel } from '../model.ts';
import { FORMULAS, NOT_MEASURED, REDERIVE, verdictLine } from '../prose.ts';
import { type ArmAnswer, answers, banners, type CellAnswer } from '../summary.ts';
import { calibrationTable } from '../tables/calibration.ts';
import { cellsTable } from '../tables/cells.ts';
import { comparisonTable } from '../tables/comparison.ts';
import { latencyTable, numbersTable } from '../tables/detail.ts';
import { environmentTable } from '../tables/environment.ts';
import { clientTable, outcomesTable } from '../tables/requests.ts';
import { validityTable } from '../tables/validity.ts';
import { bannerHtml, figureHtml, inline, type NumberedFigure, tableHtml } from './render.ts';
import { STYLE } from './style.ts';

export interface ReportFigures {
  readonly drawn: readonly NumberedFigure[];
  readonly skipped: readonly SkippedFigure[];
}

const POLICY = "default-src 'none'; style-src 'unsafe-inline'";

function answerHtml(answer: CellAnswer): string {
  const figures = answer.figures.map(
    ({ label, value, limit }) =>
      `<div><dt>${escapeHtml(label)}</dt><dd>${inline(value)}${limit === null ? '' : `<span class="limit">${escapeHtml(limit)}</span>`}</dd></div>`,
  );
  const where = [answer.where, ...answer.marks].join(' · ');
  return `<div class="answer"><div class="head"><span class="sub">${escapeHtml(where)}</span><span class="badge ${answer.tone}">${escapeHtml(answer.badge)}</span></div>
<dl class="figures">${figures.join('')}</dl><p class="note">${answer.sentence.map(inline).join('')}${escapeHtml(answer.heldBack)}</p></div>`;
}

function armHtml(arm: ArmAnswer): string {
  const role = arm.isBaseline ? ' <span class="role">baseline</span>' : '';
  const body =
    arm.empty === null ? arm.cells.map(answerHtml).join('\n') : `<p class="sub">${escapeHtml(arm.empty)}</p>`;
  return `<article class="arm"><h3>${escapeHtml(arm.arm)}${arm.arm === 'baseline' ? '' : role}</h3>${body}</article>`;
}

function headerHtml(model: ReportModel): string {
  const { manifest } = model;
  const engine = [manifest.engine.kind, manifest.engine.version ?? ''].join(' ').trim();
  const facts = [manifest.runId, utc(manifest.origin.wallMs), `engine ${engine}`, `energy ${manifest.energy}`];
  const links = [
    ['answer', 'Answer'],
    ['figures', 'Figures'],
    ['cells', 'Cells'],
    ['validity', 'Validity'],
    ['client', 'Requests and client'],
    ['environment', 'Environment'],
    ['method', 'What the numbers mean'],
  ] as const;
  return `<header><h1>${escapeHtml(manifest.experiment)}</h1><p class="sub">${escapeHtml(facts.join(' · '))}</p>
${banners(model).map(bannerHtml).join('\n')}
<nav aria-label="Sections">${links.map(([id, text]) => `<a href="#${id}">${text}</a>`).join('')}</nav></header>`;
}

function answerSection(model: ReportModel): string {
  const comparison = comparisonTable(model);
  const ratios =
    comparison === null
      ? `<p class="note">${escapeHtml(verdictLine(model.manifest.repeats))}</p>`
      : tableHtml(comparison, model.marks);
  return `<section id="answer"><h2>Answer</h2><div class="arms">${answers(model).map(armHtml).join('\n')}</div>${ratios}</section>`;
}

function figuresSection(model: ReportModel, figures: ReportFigures): string {
  const shown = figures.drawn
    .filter((figure) => figure.spec.cell === null)
    .map((figure) => figureHtml(figure, model.marks));
  const left = figures.skipped.map(
    (item) => `<li><code>${escapeHtml(item.name)}</code>: ${escapeHtml(item.reason)}</li>`,
  );
  const missing = left.length === 0 ? '' : `<p>Not drawn, because the input is missing:</p><ul>${left.join('')}</ul>`;
  return `<section id="figures"><h2>Figures</h2>${shown.join('\n')}${missing}</section>`;
}

function cellSection(model: ReportModel, view: CellView, figures: ReportFigures): string {
  const own = figures.drawn.filter((figure) => figure.spec.cell === view.anchor);
  const marks = [...model.marks, ...view.marks.filter((mark) => !model.marks.includes(mark))];
  return `<section id="${escapeHtml(view.anchor)}"><h3>${escapeHtml([view.title, ...view.marks].join(' · '))}</h3>
${tableHtml(numbersTable(view), marks)}
${tableHtml(latencyTable(view), marks)}
${own.map((figure) => figureHtml(figure, model.marks)).join('\n')}</section>`;
}

function methodSection(): string {
  const terms = FORMULAS.map(({ name, text }) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(text)}</dd>`).join('');
  const list = (items: readonly string[]) => `<ul>${items.map((item) => `<li>${escapeHtml(item)}</li>`).join('')}</ul>`;
  return `<section id="method"><h2>What the numbers mean</h2><dl class="terms">${terms}</dl>
<h3>What is not measured</h3>${list(NOT_MEASURED)}
<h3>Check it yourself</h3><p><code>tokbench verify DIR</code></p>${list(REDERIVE)}</section>`;
}

/** The whole page. Every foreign text in it is escaped; nothing in it points outside the file. */
export function htmlPage(model: ReportModel, figures: ReportFigures): string {
  const title = [...model.marks, model.manifest.experiment].join(' · ');
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}"><meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body>${headerHtml(model)}
<main>${answerSection(model)}
${figuresSection(model, figures)}
<section id="cells"><h2>Cells</h2>${tableHtml(cellsTable(model), model.marks)}
${model.cells.map((view) => cellSection(model, view, figures)).join('\n')}</section>
<section id="validity"><h2>Validity</h2>${tableHtml(validityTable(model), model.marks)}</section>
<section id="client"><h2>Requests and client</h2>${tableHtml(outcomesTable(model), model.marks)}${tableHtml(clientTable(model), model.marks)}${tableHtml(calibrationTable(model), model.marks)}</section>
<section id="environment"><h2>Environment</h2>${tableHtml(environmentTable(model), model.marks)}</section>
${methodSection()}</main>
<footer>Made by ${escapeHtml(model.manifest.tool.name)} ${escapeHtml(model.manifest.tool.version)} from the capture ${escapeHtml(model.manifest.runId)}.</footer>
</body></html>
`;
}
