import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { histogramIncrease } from '../../src/analysis/histogram.ts';
import { labelsOf, nameOf, parsePrometheus, sumSeries } from '../../src/core/prometheus.ts';

const page = (name: string) => readFileSync(join(import.meta.dirname, '../fixtures/vllm-real', name), 'utf8');

describe('the text of a metrics page', () => {
  test('reads names with colons, labels in any order, and exponents', () => {
    const values = parsePrometheus('vllm:x_total{b="2",a="1"} 1.0e+06\nplain 3\nspaced { a = "1" , } 4 \n');
    expect([...values]).toEqual([
      ['vllm:x_total{a="1",b="2"}', 1_000_000],
      ['plain', 3],
      ['spaced{a="1"}', 4],
    ]);
  });

  test('reads escapes in label values and writes them back', () => {
    const [[series, value]] = [...parsePrometheus(String.raw`m{path="C:\\x\"y\nz}, {",q=""} 1`)] as [[string, number]];
    expect(value).toBe(1);
    expect(series).toBe(String.raw`m{path="C:\\x\"y\nz}, {",q=""}`);
    expect(labelsOf(series)).toEqual(
      new Map([
        ['path', 'C:\\x"y\nz}, {'],
        ['q', ''],
      ]),
    );
    expect(nameOf(series)).toBe('m');
  });

  test('reads NaN and infinities as what they are', () => {
    const values = parsePrometheus('a NaN\nb +Inf\nc -Inf\nd Inf\ne nan\n');
    expect([...values.values()]).toEqual([Number.NaN, Infinity, -Infinity, Infinity, Number.NaN]);
  });

  test('leaves out comments, timestamps, exemplars and broken lines', () => {
    const text = [
      '# HELP a_total about',
      '# TYPE a counter',
      'a_total 5 1700000000.5',
      'h_bucket{le="+Inf"} 7 # {trace_id="abc"} 0.67 1.5',
      'h_count 7# {x="y"} 1',
      'broken{a="1} 3',
      'broken 3x',
      '=nonsense',
      '   ',
      '# EOF',
    ].join('\r\n');
    expect([...parsePrometheus(text)]).toEqual([
      ['a_total', 5],
      ['h_bucket{le="+Inf"}', 7],
      ['h_count', 7],
    ]);
  });

  test('a sum over labels takes the whole name and nothing that merely begins like it', () => {
    const values = parsePrometheus('x{engine="0"} 1\nx{engine="1"} 2\nx_total 5\nx{engine="2"} NaN\n');
    expect(sumSeries(values, 'x')).toBe(3);
    expect(sumSeries(values, 'y')).toBeNull();
    expect(sumSeries(parsePrometheus('x NaN'), 'x')).toBeNull();
  });

  test('reads a real page of vLLM without losing a sample', () => {
    const text = page('metrics_after.txt');
    const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const values = parsePrometheus(text);
    expect(values.size).toBe(samples.length);
    expect(sumSeries(values, 'vllm:num_requests_running')).toBe(0);
  });

  test('a histogram grows by differences of cumulative buckets, summed over engines', () => {
    const before = parsePrometheus(
      'h_bucket{e="0",le="1.0"} 1\nh_bucket{e="0",le="+Inf"} 2\nh_sum{e="0"} 3\nh_count{e="0"} 2\n',
    );
    const after = parsePrometheus(
      'h_bucket{e="0",le="1.0"} 4\nh_bucket{e="0",le="+Inf"} 7\nh_sum{e="0"} 13\nh_count{e="0"} 7\n',
    );
    expect(histogramIncrease(before, after, 'h')).toEqual({
      count: 5,
      sum: 10,
      buckets: [
        { upTo: 1, count: 3 },
        { upTo: Infinity, count: 5 },
      ],
    });
    expect(histogramIncrease(after, before, 'h')).toBeNull();
    expect(histogramIncrease(before, after, 'other')).toBeNull();
  });

  test('two real pages give the mean time to first token of the requests between them', () => {
    const [before, after] = ['metrics_before.txt', 'metrics_after.txt'].map((name) => parsePrometheus(page(name)));
    const grown = histogramIncrease(before!, after!, 'vllm:time_to_first_token_seconds');
    expect(grown!.count).toBeGreaterThan(0);
    expect(grown!.buckets.at(-1)).toEqual({ upTo: Infinity, count: grown!.count });
  });
});
