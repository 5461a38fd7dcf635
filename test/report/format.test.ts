// Numbers as text, and text made safe.

import { describe, expect, test } from 'vitest';
import { escapeHtml, escapeMarkdown, plainText, slug } from '../../src/report/escape.ts';
import { count, duration, number, p99, percent, setting, withBound, withUnit } from '../../src/report/format.ts';
import { inFlight, requestPoints, thin } from '../../src/report/traces.ts';
import { cell, PHASES, summaryOf } from './support/cell.ts';

describe('numbers', () => {
  test.each([
    [1234.5, '1,235'],
    [123.4, '123'],
    [12.34, '12.3'],
    [0.01234, '0.0123'],
    [0, '0'],
    [null, 'not defined'],
    [Number.NaN, 'not defined'],
    [Number.POSITIVE_INFINITY, '∞'],
  ])('%s reads %s', (value, text) => expect(number(value)).toBe(text));

  test('a value is shown to the second digit of its bound', () => {
    expect(withBound(1.92, 0.00806, 'J/token')).toBe('1.9200 ± 0.0081 J/token');
    expect(withBound(6360, 26.7, 'J')).toBe('6,360 ± 27 J');
    expect(withBound(null, 1, 'J', 'absent')).toBe('absent');
    expect(withBound(2, null, 'J')).toBe('2.000 J');
  });

  test('limits, shares, counts and durations', () => {
    expect(setting(50)).toBe('50');
    expect(setting(12_345)).toBe('12,345');
    expect(percent(0.9876)).toBe('98.8 %');
    expect(percent(null)).toBe('not defined');
    expect(count(1_000_000)).toBe('1,000,000');
    expect(withUnit(Number.POSITIVE_INFINITY, 'ms')).toBe('∞');
    expect(duration(155e9)).toBe('2 min 35 s');
    expect(duration(4e7)).toBe('40.0 ms');
  });

  test('a p99 of few requests carries n and the word small; one of many does not', () => {
    expect(p99(summaryOf([1, 2, 3]))).toBe('3.00 ms (n = 3, small)');
    expect(p99(summaryOf(Array.from({ length: 662 }, () => 5)))).toBe('5.00 ms');
    expect(p99(summaryOf([1, Number.POSITIVE_INFINITY]))).toBe('∞ (1 never completed; n = 2, small)');
  });
});

describe('foreign text', () => {
  test('loses control characters and line breaks', () => {
    expect(plainText('a\u0000b\nc\u202ed\ud800')).toBe('a�b c�d�');
  });

  test('is escaped for HTML and for Markdown', () => {
    expect(escapeHtml(`<a href="x">'&`)).toBe('&lt;a href=&quot;x&quot;&gt;&#39;&amp;');
    expect(escapeMarkdown('a|b *c* [d](e) `f`')).toBe('a\\|b \\*c\\* \\[d\\](e) \\`f\\`');
  });

  test('becomes a safe name', () => {
    expect(slug('../../etc/passwd')).toBe('etc-passwd');
    expect(slug('<>')).toBe('unnamed');
  });
});

describe('traces of requests', () => {
  const { file, requests } = cell({ failEvery: 5 });
  const points = requestPoints(requests, PHASES.startNs, PHASES.window, file.slo);

  test('the points of the window count as the metrics do', () => {
    const window = points.filter((point) => point.inWindow);
    expect(window.length).toBe(file.metrics.arrivals);
    expect(window.filter((point) => point.attained).length).toBe(file.metrics.attained);
    expect(window.filter((point) => point.ttftMs === Number.POSITIVE_INFINITY).length).toBe(file.metrics.ttft.infinite);
  });

  test('requests in flight rise by dispatch, fall by the end, and come back to none', () => {
    const steps = inFlight(requests, PHASES.startNs, PHASES.drainEndNs, 1e6);
    expect(steps.length).toBe(2 * requests.count);
    expect(steps.at(-1)!.value).toBe(0);
    expect(Math.min(...steps.map((step) => step.value))).toBe(0);
  });

  test('thinning keeps the last item', () => {
    expect(thin([1, 2, 3, 4, 5, 6], 3)).toEqual([1, 3, 5, 6]);
    expect(thin([1, 2], 10)).toEqual([1, 2]);
  });
});
