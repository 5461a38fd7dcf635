// Small pieces of HTML: linked text, tables, banners, figures. Everything foreign is escaped here.

import { escapeHtml } from '../escape.ts';
import type { FigureSpec } from '../figures/spec.ts';
import type { Banner } from '../summary.ts';
import { type Inline, type Row, type Table, textOf } from '../tables/table.ts';

/** A figure that was drawn, with its number in the report. */
export interface NumberedFigure {
  readonly number: number;
  readonly spec: FigureSpec;
  readonly svg: string;
}

export function inline(item: Inline): string {
  if (typeof item === 'string') return escapeHtml(item);
  const note = item.note ? `<span class="limit">${escapeHtml(item.note)}</span>` : '';
  return `<a href="#${escapeHtml(item.anchor)}">${escapeHtml(item.text)}</a>${note}`;
}

/** `SYNTHETIC · shortened · ` before a title. */
export function markPrefix(marks: readonly string[]): string {
  return marks.map((mark) => `<span class="mark">${escapeHtml(mark)}</span> · `).join('');
}

function row(table: Table, item: Row): string {
  const cells = item.cells.map((cell, at) => {
    const content = inline(cell);
    if (at === 0 && table.columns[at]!.label !== 'rule') return `<th scope="row">${content}</th>`;
    return `<td${table.columns[at]!.align === 'right' ? ' class="r"' : ''}>${content}</td>`;
  });
  return `<tr${item.tone ? ` class="${item.tone}"` : ''}>${cells.join('')}</tr>`;
}

export function tableHtml(table: Table, marks: readonly string[]): string {
  const head = table.columns.map(
    (column) => `<th scope="col"${column.align === 'right' ? ' class="r"' : ''}>${escapeHtml(column.label)}</th>`,
  );
  const body = table.rows.map((item) => row(table, item)).join('\n');
  const notes = table.notes.map((note) => `<p class="note">${escapeHtml(note)}</p>`).join('');
  const shape = table.columns.length === 2 ? ' class="pairs"' : '';
  return `<div class="scroll" tabindex="0"><table${shape}><caption>${markPrefix(marks)}${escapeHtml(table.title)}</caption>
<thead><tr>${head.join('')}</tr></thead><tbody>
${body}
</tbody></table></div>${notes}`;
}

export function bannerHtml(banner: Banner): string {
  return `<div class="banner ${banner.tone}"><strong>${escapeHtml(banner.title)}</strong>${escapeHtml(banner.text)}</div>`;
}

/** The SVG inline on white paper, with its number; namespaces are implied inside HTML. */
export function figureHtml(figure: NumberedFigure, marks: readonly string[]): string {
  const svg = figure.svg.replace(/ xmlns(:\w+)?="[^"]*"/g, '');
  const title = `Figure ${figure.number}. ${figure.spec.title}`;
  const cell = figure.spec.cell === null ? '' : ` (${textOf(figure.spec.subtitle)})`;
  return `<figure id="fig-${figure.number}"><div class="paper" tabindex="0">${svg}</div><figcaption>${markPrefix(marks)}${escapeHtml(title + cell)}</figcaption></figure>`;
}
