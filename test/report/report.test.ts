// A report: which files it has, what it must say, what it must never say.

import { describe, expect, test } from 'vitest';
import { writeReport } from '../../src/report/write.ts';
import { memoryWriter, type RunOptions, run } from './support/run.ts';

async function reportOf(options: RunOptions = {}) {
  const files = memoryWriter();
  const report = await writeReport(run(options), files.write);
  return { report, files, html: files.text(report.html), markdown: files.text(report.markdown) };
}

describe('files of a report', () => {
  test('a page, a Markdown file and each figure as SVG and PNG lie under report/', async () => {
    const { report, files } = await reportOf();
    expect(report.html).toBe('report/report.html');
    expect(report.markdown).toBe('report/report.md');
    expect([...files.files.keys()].toSorted()).toEqual([...report.figures, report.html, report.markdown].toSorted());
    for (const path of report.figures.filter((name) => name.endsWith('.png')))
      expect([...(files.files.get(path) as Uint8Array).slice(0, 4)]).toEqual([0x89, 0x50, 0x4e, 0x47]);
  });
});
