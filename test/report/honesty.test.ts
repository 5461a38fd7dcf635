// What a report must never do: hide that numbers are synthetic, run foreign text, or print a hole in the data.

import { describe, expect, test } from 'vitest';
import { cell } from './support/cell.ts';
import { hits, reportOf, visibleText } from './support/report.ts';
import { launch, type RunOptions } from './support/run.ts';

const SHORTENED: RunOptions = {
  shortened: ['window', 'soak'],
  cells: [{ labels: ['shortened', 'short'] }, { arm: 'lock70', clockMhz: 1770 }],
};

const captions = (html: string): string[] =>
  [...html.matchAll(/<(?:fig)?caption>(.*?)<\/(?:fig)?caption>/g)].map((match) => visibleText(match[1]!));
const tableTitles = (markdown: string): string[] => markdown.split('\n\n').filter((part) => /^\*\*.*\*\*$/.test(part));

describe('marks of a run', () => {
  test('a synthetic run says so in every image, every table title and every caption', async () => {
    const { html, markdown, svgs } = await reportOf();
    for (const svg of svgs) {
      expect(svg).toMatch(/class="watermark"[\s\S]*SYNTHETIC/);
      expect(svg).toContain('rotate(');
    }
    expect(captions(html).length).toBeGreaterThan(15);
    for (const caption of captions(html)) expect(caption).toContain('SYNTHETIC');
    expect(tableTitles(markdown).length).toBe(6);
    for (const title of tableTitles(markdown)) expect(title).toContain('SYNTHETIC');
    expect(html).toContain('<title>SYNTHETIC · demo</title>');
  });

  test('a measured run has no such word anywhere', async () => {
    const { html, markdown, svgs } = await reportOf({ synthetic: false, cells: [{ gpu: 'none' }] });
    expect(hits(`${html}${markdown}${svgs.join('')}`, /synthetic|simulated|watermark/i)).toEqual([]);
  });

  test('one synthetic cell is enough to mark the whole run', async () => {
    const { svgs } = await reportOf({ synthetic: false, cells: [{ gpu: 'simulated' }] });
    for (const svg of svgs) expect(svg).toContain('SYNTHETIC');
  });

  test('a shortened run says so in every image and title, and that it decides no hypothesis', async () => {
    const { html, markdown, svgs } = await reportOf(SHORTENED);
    for (const text of [...svgs, ...captions(html), ...tableTitles(markdown)]) expect(text).toContain('shortened');
    expect(visibleText(html)).toContain('not_evaluable: shortened');
  });

  test('the label of a short window stands beside every figure of its cell', async () => {
    const { report, files } = await reportOf(SHORTENED);
    const own = report.figures.filter((path) => path.endsWith('.svg') && path.includes('baseline__l1'));
    expect(own.length).toBe(3);
    for (const path of own) expect(String(files.get(path))).toMatch(/baseline · l1 · repeat 1 · shortened · short</);
  });
});

describe('foreign text', () => {
  const evil = '<script>alert(1)</script>"\'&\u0000\u202e';
  const hostile: RunOptions = {
    cells: [
      {
        arm: evil,
        load: '../../etc',
        rules: [{ rule: 'V99', code: evil, act: 'W', status: 'hit', evidence: { [evil]: evil }, text: evil }],
      },
      { arm: `${evil}2`, clockMhz: 1770 },
    ],
    manifest: {
      experiment: evil,
      runId: evil,
      status: 'failed',
      engine: { kind: evil, version: evil },
      host: { [evil]: evil },
      failures: [{ where: evil, code: evil, message: `${evil}\n| a | b |\n# heading` }],
    },
    launches: [launch({ arm: evil, repeat: 1 }, { phases: [{ name: `soak ${evil}`, startNs: 4e9, endNs: 26e9 }] })],
  };

  test('never becomes markup in the page, the images or the Markdown', async () => {
    const { html, markdown, svgs } = await reportOf(hostile, true);
    for (const text of [html, markdown, ...svgs])
      expect(hits(text, /<script|<\/script|\p{Cc}(?<!\n)|\u202e/u)).toEqual([]);
    expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;');
    expect(hits(markdown, /^# heading/m)).toEqual([]);
    expect(hits(markdown, /^\| a \| b \|/m)).toEqual([]);
  });

  test('never becomes a path', async () => {
    const { report } = await reportOf(hostile);
    for (const path of report.figures) expect(path).toMatch(/^report\/figures\/[a-z0-9_-]+\.(svg|png)$/);
    expect(new Set(report.figures).size).toBe(report.figures.length);
  });
});

describe('holes in the data', () => {
  const bare = cell({ failEvery: 1 }).file.metrics;
  const empty = {
    ...bare.ttft,
    n: 0,
    infinite: 0,
    meanMs: null,
    p50Ms: null,
    p90Ms: null,
    p95Ms: null,
    p99Ms: null,
    p99LoadgenMs: null,
    maxMs: null,
  };
  const nothing = {
    ...bare,
    arrivals: 0,
    attainment: null,
    feasible: null,
    ttft: empty,
    tpot: empty,
    itl: empty,
    e2e: empty,
    sendLag: empty,
    ttftFromDispatch: empty,
    outputTokens: null,
    goodTokens: null,
    throughputTokPerS: null,
    goodputTokPerS: null,
    edgeImbalance: null,
    energy: null,
    energyReason: 'edge_not_bracketed',
    achievedSmClockMhz: null,
  };
  const cases: [string, RunOptions][] = [
    ['the demo', {}],
    ['no GPU', { synthetic: false, cells: [{ gpu: 'none', failEvery: 3 }] }],
    ['every request failed', { cells: [{ failEvery: 1 }] }],
    [
      'nothing was measured',
      {
        cells: [{ metrics: nothing }],
        metrics: false,
        manifest: {
          end: null,
          status: 'running',
          idleBare: { interval: { startNs: 0, endNs: 1 }, meanW: null, boundW: null, reason: null },
        },
      },
    ],
  ];

  test.each(cases)('%s: no NaN, undefined, null or -Infinity is visible', async (_name, options) => {
    const { html, markdown, svgs } = await reportOf(options);
    for (const text of [visibleText(html), markdown, ...svgs])
      expect(hits(text, /NaN|undefined|\bnull\b|-?Infinity|\[object/)).toEqual([]);
  });

  test('energy that a rule forbids is absent, with the rule', async () => {
    const { html } = await reportOf({ cells: [{ metrics: nothing }] });
    expect(visibleText(html)).toContain('not measured (edge_not_bracketed)');
  });
});
