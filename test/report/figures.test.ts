// Figures: stored pictures that a change must not alter unseen, and what a figure needs to be drawn.

import { beforeAll, describe, expect, test, vi } from 'vitest';
import { allFigures } from '../../src/report/figures/all.ts';
import { type FigureKit, openKit } from '../../src/report/figures/kit.ts';
import { placeLabels } from '../../src/report/figures/place.ts';
import type { FigureResult } from '../../src/report/figures/spec.ts';
import { shorten, textWidth, wrapText } from '../../src/report/figures/theme.ts';
import { reportModel } from '../../src/report/model.ts';
import { hits } from './support/report.ts';
import { type RunOptions, run } from './support/run.ts';

let kit: FigureKit;
beforeAll(async () => {
  kit = await openKit();
});

async function figures(options: RunOptions = {}): Promise<FigureResult[]> {
  return allFigures(kit.plot, await reportModel(run(options)));
}

async function figure(name: string, options: RunOptions = {}) {
  const found = (await figures(options)).find((item) => item.name === name);
  if (found?.kind !== 'figure') throw new Error(`${name}: ${found?.reason ?? 'there is no such figure'}`);
  return found;
}

/** One element a line, numbers to one digit: differences that no eye sees are none. */
const stored = (svg: string): string =>
  svg.replace(/></g, '>\n<').replace(/-?\d+\.\d+/g, (text) => String(+Number(text).toFixed(1)));

const DEMO: RunOptions = {
  shortened: ['window'],
  cells: [
    { labels: ['shortened'], failEvery: 40 },
    { arm: 'lock70', clockMhz: 1770, tpotMs: 28, powerW: 148, jPerToken: 1.36, valid: false, labels: ['shortened'] },
  ],
};

describe('pictures', () => {
  test.each([
    'latency',
    'goodput-energy',
    'energy-clock',
    'timeline__lock70__l1__r1__a1',
    'ttft-time__baseline__l1__r1__a1',
    'in-flight__baseline__l1__r1__a1',
  ])('%s is drawn as stored', async (name) => {
    const warn = vi.spyOn(console, 'warn');
    const svg = kit.svg(await figure(name, DEMO), ['SYNTHETIC', 'shortened']);
    await expect(stored(svg)).toMatchFileSnapshot(`snapshots/${name}.svg`);
    expect(warn).not.toHaveBeenCalled();
  });

  test('an image has a title, a description and a name for the reader', async () => {
    const svg = kit.svg(await figure('goodput-energy'), []);
    expect(svg).toMatch(/^<svg [^>]*role="img"/);
    expect(svg).toContain('aria-labelledby="goodput-energy-title goodput-energy-desc"');
    expect(svg).toMatch(
      /<desc id="goodput-energy-desc">[^<]*baseline · l1 · repeat 1: 1\d\d tok\/s at 1\.9200 ± 0\.0081 J\/token/,
    );
  });

  test('an invalid cell is drawn hollow, a valid one filled', async () => {
    const hollow = /stroke="#d55e00" fill="#ffffff"/;
    expect(kit.svg(await figure('goodput-energy', DEMO), [])).toMatch(hollow);
    expect(hits(kit.svg(await figure('goodput-energy'), []), hollow)).toEqual([]);
  });
});

describe('what a figure needs', () => {
  const reasonOf = async (name: string, options: RunOptions) => {
    const found = (await figures(options)).find((item) => item.name === name);
    return found?.kind === 'skipped' ? found.reason : null;
  };

  test('J/token against the clock needs two clocks', async () => {
    expect(await reasonOf('energy-clock', { cells: [{}, { arm: 'fp8' }] })).toContain('two different SM clocks');
    expect(await reasonOf('energy-clock', {})).toBeNull();
  });

  test('requests in flight are drawn without server gauges, and the note says so', async () => {
    const { notes, panels } = await figure('in-flight__baseline__l1__r1__a1', { metrics: false });
    expect(notes.join()).toContain('not scraped');
    expect(panels.length).toBe(1);
  });

  test('soak and idle lead to the first load only', async () => {
    const model = await reportModel(run({ cells: [{}, { load: 'l2' }] }));
    expect(model.cells[0]!.bands.map((band) => band.name)).toContain('soak');
    expect(model.cells[1]!.bands.map((band) => band.name)).toEqual(['warm-up', 'window', 'tail', 'drain']);
  });

  test('no line is drawn over a stretch without samples', async () => {
    const [view] = (await reportModel(run())).cells;
    const gaps = view!.gpu!.powerW.filter((bin) => Number.isNaN(bin.mean));
    expect(gaps.length).toBe(1);
    expect(gaps[0]!.atS).toBeGreaterThan(-14);
    expect(gaps[0]!.atS).toBeLessThan(-11);
  });

  test('gauges are summed over engines, and other series with the same beginning left out', async () => {
    const [view] = (await reportModel(run())).cells;
    expect(Math.max(...view!.running.map((step) => step.value))).toBe(4);
  });
});

describe('labels', () => {
  test('of close points do not cover each other and stay inside the frame', () => {
    const frame = { left: 0, right: 600, top: 0, bottom: 300 };
    const items = [0, 1, 2, 3].map((at) => ({ label: `arm-${at} · load`, x: 500 + at * 4, y: 150 + at, reach: 7 }));
    const boxes = placeLabels(items, [], frame, 11).map((at, i) => {
      const width = textWidth(items[i]!.label, 11);
      const from = items[i]!.x + at.dx;
      const left = at.anchor === 'start' ? from : at.anchor === 'end' ? from - width : from - width / 2;
      return { left, right: left + width, top: items[i]!.y + at.dy - 6, bottom: items[i]!.y + at.dy + 6 };
    });
    for (const [i, a] of boxes.entries()) {
      expect(a.left >= 0 && a.right <= 600).toBe(true);
      for (const b of boxes.slice(i + 1))
        expect(a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top).toBe(true);
    }
  });

  test('a long text is wrapped, and a long word cut with an ellipsis', () => {
    const lines = wrapText(`one two three ${'x'.repeat(200)}`, 12, 100);
    for (const line of lines) expect(textWidth(line, 12)).toBeLessThanOrEqual(100);
    expect(lines.at(-1)).toMatch(/x…$/);
    expect(shorten('short', 12, 100)).toBe('short');
  });
});
