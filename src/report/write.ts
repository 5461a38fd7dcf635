// Makes the report of a run: figures as SVG and PNG, one HTML page, one Markdown file, all sealed with the capture.

import { writeDerived } from '../capture/derived.ts';
import { allFigures } from './figures/all.ts';
import { type FigureKit, openKit } from './figures/kit.ts';
import type { SkippedFigure } from './figures/spec.ts';
import { htmlPage } from './html/page.ts';
import type { NumberedFigure } from './html/render.ts';
import { markdownText } from './markdown.ts';
import { reportModel } from './model.ts';
import type { ReportSource } from './source.ts';

export interface WrittenReport {
  /** Paths relative to the run folder. */
  readonly html: string;
  readonly markdown: string;
  readonly figures: readonly string[];
  readonly skipped: readonly { readonly name: string; readonly reason: string }[];
}

/** Writes one derived file of a run and seals it; `relPath` is relative to the run folder. */
export type DerivedWriter = (runDir: string, relPath: string, content: Uint8Array | string) => Promise<void>;

const HTML = 'report/report.html';
const MARKDOWN = 'report/report.md';

/**
 * Writes report.html, report.md and the figures below `report/` of the run folder. What a figure lacks makes it
 * `skipped` with a reason. Throws what the reader throws on damaged input (CaptureError) and what the writer throws.
 */
export async function writeReport(
  run: ReportSource,
  write: DerivedWriter = writeDerived,
  open: () => Promise<FigureKit> = openKit,
): Promise<WrittenReport> {
  const model = await reportModel(run);
  const kit = await open();
  const drawn: NumberedFigure[] = [];
  const skipped: SkippedFigure[] = [];
  const written: string[] = [];
  for (const figure of allFigures(kit.plot, model)) {
    if (figure.kind === 'skipped') {
      skipped.push(figure);
      continue;
    }
    const svg = kit.svg(figure, model.marks);
    const stem = `report/figures/${figure.name}`;
    await write(run.dir, `${stem}.svg`, svg);
    await write(run.dir, `${stem}.png`, kit.png(svg));
    written.push(`${stem}.svg`, `${stem}.png`);
    drawn.push({ number: drawn.length + 1, spec: figure, svg });
  }
  await write(run.dir, HTML, htmlPage(model, { drawn, skipped }));
  await write(run.dir, MARKDOWN, markdownText(model, { drawn, skipped }));
  return {
    html: HTML,
    markdown: MARKDOWN,
    figures: written,
    skipped: skipped.map(({ name, reason }) => ({ name, reason })),
  };
}
