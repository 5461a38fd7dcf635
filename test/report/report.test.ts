// A report: which files it has, what it must say, what it must never say.

import { describe, expect, test } from 'vitest';
import type { RuleOutcome } from '../../src/core/index.ts';
import { hits, reportOf, section, visibleText } from './support/report.ts';
import { launch, type RunOptions } from './support/run.ts';

const GPU_LESS: RunOptions = {
  synthetic: false,
  cells: [{ gpu: 'none' }, { gpu: 'none', load: 'l2', ttftMs: 900, tpotMs: 60, failEvery: 9 }],
};
const THROTTLED: RuleOutcome = {
  rule: 'V12',
  code: 'throttle',
  act: 'X',
  status: 'hit',
  evidence: { samples: 12, bits: 8, nothing: null },
  text: 'hardware slowdown in 12 samples',
};

describe('files of a report', () => {
  test('a page, a Markdown file and each figure as SVG and PNG lie under report/', async () => {
    const { report, files } = await reportOf({}, true);
    expect(report.html).toBe('report/report.html');
    expect(report.markdown).toBe('report/report.md');
    expect([...files.keys()].toSorted()).toEqual([...report.figures, report.html, report.markdown].toSorted());
    for (const path of report.figures.filter((name) => name.endsWith('.png')))
      expect([...(files.get(path) as Uint8Array).slice(0, 4)]).toEqual([0x89, 0x50, 0x4e, 0x47]);
  });

  test('two arms at two clocks give all six kinds of figures', async () => {
    const { report } = await reportOf();
    const kinds = new Set(
      report.figures.map((path) => path.replace(/^report\/figures\//, '').replace(/(__.*)?\.\w+$/, '')),
    );
    expect([...kinds].toSorted()).toEqual([
      'energy-clock',
      'goodput-energy',
      'in-flight',
      'latency',
      'timeline',
      'ttft-time',
    ]);
    expect(report.skipped).toEqual([]);
  });

  test('the same capture gives the same bytes', async () => {
    const [one, two] = [await reportOf({}, true), await reportOf({}, true)];
    for (const [path, content] of one.files) expect(two.files.get(path), path).toEqual(content);
  });
});

describe('the page', () => {
  test('is one file: no script, no address, nothing to fetch', async () => {
    const { html } = await reportOf();
    expect(hits(html, /https?:|\/\/[a-z]|<script|<link|<img|\ssrc=|[^-\w]url\(|@import/i)).toEqual([]);
    expect(html).toContain("default-src 'none'");
  });

  test('fits a phone and follows light and dark', async () => {
    const { html } = await reportOf();
    expect(html).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">');
    expect(html).toContain('prefers-color-scheme:dark');
  });

  test('every link leads to an id of the page, and no id is used twice', async () => {
    const { html } = await reportOf({ cells: [{}, { repeat: 2 }, { arm: 'a b' }, { arm: 'a-b' }] });
    const ids = [...html.matchAll(/\sid="([^"]+)"/g)].map((match) => match[1]!);
    const targets = [...html.matchAll(/href="#([^"]+)"/g)].map((match) => match[1]!);
    expect(new Set(ids).size).toBe(ids.length);
    expect(targets.filter((target) => !ids.includes(target))).toEqual([]);
    expect(targets.length).toBeGreaterThan(40);
  });

  test('the answer comes before figures, cells and rules', async () => {
    const { html } = await reportOf();
    const order = ['answer', 'figures', 'cells', 'validity', 'client', 'environment', 'method'].map((id) =>
      html.indexOf(`<section id="${id}"`),
    );
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(order[0]).toBeGreaterThan(0);
    const answer = visibleText(section(html, 'answer'));
    expect(answer).toContain('keeps the promise');
    expect(answer).toMatch(/goodput 1\d\d tok\/s/);
    expect(answer).toMatch(/p99 TTFT \d+ ms limit 1,000 ms · n = \d+, small/);
    expect(answer).toContain('1.9200 ± 0.0081 J/token');
  });

  test('says how to check it and what is not measured', async () => {
    const { html, markdown } = await reportOf();
    for (const text of [visibleText(html), markdown]) {
      expect(text).toContain('tokbench verify DIR');
      expect(text).toMatch(/host CPU, memory, network, cooling and PUE are excluded/);
    }
  });
});

describe('comparison with the baseline', () => {
  test('is a ratio with the span of the energy bounds, and no verdict', async () => {
    const { html, markdown } = await reportOf();
    const answer = visibleText(section(html, 'answer'));
    expect(answer).toContain('Ratios to baseline');
    expect(answer).toContain('0.708 (0.701 to 0.716)');
    for (const text of [answer, markdown]) expect(text).toContain('1 repeat: no verdict; ratios only.');
    expect(hits(`${html}${markdown}`, /superior|equivalent|significant|no effect|winner/i)).toEqual([]);
  });

  test('warns of a pair with an invalid cell', async () => {
    const { html } = await reportOf({ cells: [{}, { arm: 'lock70', valid: false, rules: [THROTTLED] }] });
    expect(visibleText(section(html, 'answer'))).toContain('INVALID pair');
    expect(visibleText(section(html, 'answer'))).toContain('1 pair has an invalid cell');
  });
});

describe('a run without a GPU', () => {
  test('shows no figure of energy and says why', async () => {
    const { html, markdown, report } = await reportOf(GPU_LESS);
    expect(visibleText(html)).toContain('not measured (no GPU)');
    expect(hits(`${visibleText(html)}${markdown}`, /\d\s*(J\/token|W\b|MHz)/)).toEqual([]);
    expect(report.skipped.map((item) => item.name)).toEqual([
      'goodput-energy',
      'energy-clock',
      'timeline__baseline__l1__r1__a1',
      'timeline__baseline__l2__r1__a1',
    ]);
    for (const { name, reason } of report.skipped) {
      expect(reason).toContain('energy: none');
      expect(visibleText(html)).toContain(name);
      expect(markdown.replaceAll('\\', '')).toContain(`${name}: ${reason}`);
    }
  });

  test('lists the rules that do not apply, with the reason', async () => {
    const { html } = await reportOf(GPU_LESS);
    expect(visibleText(section(html, 'validity'))).toContain(
      'V11 energy_edge_bound not applicable all cells energy: none',
    );
  });

  test('an infinite p99 is shown as such, with the number of requests that never completed', async () => {
    const { html } = await reportOf(GPU_LESS);
    expect(visibleText(section(html, 'answer'))).toContain('p99 TTFT ∞ limit 1,000 ms · 9 never completed');
    expect(visibleText(section(html, 'answer'))).toContain('breaks the promise');
  });
});

describe('money', () => {
  test('without a price there is no dollar anywhere', async () => {
    const { html, markdown } = await reportOf();
    expect(hits(`${html}${markdown}`, /\$|dollar|Mtok/i)).toEqual([]);
  });

  test('with a price each cell has its cost', async () => {
    const { html } = await reportOf({ cells: [{ pricePerHour: 1.99 }], manifest: { pricePerHour: 1.99 } });
    expect(visibleText(html)).toContain('1.10 $ per million good tokens at 1.99 $ per hour');
  });
});

describe('validity', () => {
  test('hits come first, with evidence and effect; the cell is marked wherever it is named', async () => {
    const { html, svgs } = await reportOf({
      cells: [{}, { arm: 'lock70', clockMhz: 1770, valid: false, rules: [THROTTLED] }],
    });
    const rules = visibleText(section(html, 'validity'));
    expect(rules).toMatch(
      /why V12 throttle HIT excludes the cell lock70 · l1 · repeat 1 hardware slowdown in 12 samples · samples 12, bits 8/,
    );
    expect(visibleText(section(html, 'answer'))).toContain('This cell is invalid (V12): do not compare it.');
    expect(svgs.filter((svg) => svg.includes('INVALID (V12)')).length).toBe(svgs.length - 3);
  });

  test('an arm that lost more cells than another is pointed at', async () => {
    const bad = { arm: 'cap80', valid: false, rules: [THROTTLED] };
    const { html } = await reportOf({ cells: [{}, { repeat: 2 }, bad, { ...bad, repeat: 2 }] });
    expect(visibleText(section(html, 'validity'))).toContain('baseline: 0, cap80: 2');
  });
});

describe('what went wrong in a run', () => {
  test('failures and missing cells are said first, with the advice', async () => {
    const failure = { code: 'port_in_use', message: 'Port 8000 is taken.', advice: 'Give another port.' };
    const { html } = await reportOf({
      manifest: {
        status: 'failed',
        arms: ['baseline', 'lock70', 'cap80'],
        plannedCells: ['a', 'b', 'c'],
        failures: [{ where: 'lock70__r1', code: 'port_in_use', message: 'Port 8000 is taken.' }],
      },
      cells: [{}],
      launches: [
        launch({ arm: 'baseline', repeat: 1 }),
        launch({ arm: 'lock70', repeat: 1 }, { status: 'failed', failure }),
      ],
    });
    const text = visibleText(html);
    expect(text).toContain('1 of 3 planned cells are complete');
    expect(text).toContain('port_in_use lock70__r1: Port 8000 is taken.');
    expect(text).toContain('No cell: Port 8000 is taken. Give another port.');
    expect(text).toContain('before this arm was launched');
  });

  test('a run without any cell still has a report', async () => {
    const { report, html } = await reportOf({ cells: [], manifest: { arms: ['baseline'], status: 'interrupted' } });
    expect(report.figures).toEqual([]);
    expect(report.skipped.map((item) => item.name)).toEqual(['latency', 'goodput-energy', 'energy-clock']);
    expect(visibleText(html)).toContain('run interrupted');
  });
});
