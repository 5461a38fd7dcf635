// Writes a report into memory and reads it back as a person would see it.

import { type FigureKit, openKit } from '../../../src/report/figures/kit.ts';
import { writeReport } from '../../../src/report/write.ts';
import { memoryWriter, type RunOptions, run } from './run.ts';

let shared: Promise<FigureKit> | undefined;

/** The drawing kit without its slow half: a PNG is only the four bytes that begin one. */
async function quickKit(): Promise<FigureKit> {
  shared ??= openKit();
  return { ...(await shared), png: () => Uint8Array.of(0x89, 0x50, 0x4e, 0x47) };
}

/** A report of a built run. Images are not rendered unless `png` says so. */
export async function reportOf(options: RunOptions = {}, png = false) {
  const memory = memoryWriter();
  const report = await writeReport(run(options), memory.write, png ? openKit : quickKit);
  const svgs = report.figures.filter((path) => path.endsWith('.svg')).map(memory.text);
  return { report, files: memory.files, html: memory.text(report.html), markdown: memory.text(report.markdown), svgs };
}

/** The visible text of a page or an image: no tags, no styles, entities decoded. */
export function visibleText(markup: string): string {
  return markup
    .replace(/<style[\s\S]*?<\/style>/g, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&amp;/g, '&')
    .replace(/\s+/g, ' ');
}

/** The markup of the section with this id. */
export function section(html: string, id: string): string {
  const start = html.indexOf(`<section id="${id}"`);
  return html.slice(start, html.indexOf('<section id=', start + 1));
}

/** What a pattern finds, with a little context: a failure then shows the place and not the whole page. */
export function hits(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(new RegExp(pattern, pattern.flags.replace('g', '').concat('g')))].map((match) =>
    text.slice(Math.max(0, match.index - 40), match.index + 40),
  );
}
