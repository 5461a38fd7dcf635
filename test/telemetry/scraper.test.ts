import { afterEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../src/core/index.ts';
import { type Scraper, type ScraperOptions, startScraper } from '../../src/telemetry/scraper.ts';
import { until } from '../support/until.ts';

let scraper: Scraper | null = null;

/** A clock that the test moves, and a page that it changes. */
function world(page: string | null) {
  const state = { nowNs: 1_000n, page, fetches: 0 };
  const clock: Clock = { monotonicNs: () => state.nowNs, wallMs: () => 0 };
  const pairOf = (text: string): [string, number] => {
    const at = text.lastIndexOf('=');
    return [text.slice(0, at), Number(text.slice(at + 1))];
  };
  const parse = (text: string) => new Map(text.split(' ').map(pairOf));
  const fetchText = async () => {
    state.fetches += 1;
    state.nowNs += 10n;
    return state.page;
  };
  const options: ScraperOptions = { fetchText, parse, prefixes: ['vllm:'], originNs: 1_000n, clock, periodMs: 1 };
  return { state, options };
}

afterEach(async () => {
  await scraper?.stop();
  scraper = null;
});

describe('scraper', () => {
  test('keeps the asked series, stamped at the end of the answer', async () => {
    const { options } = world('vllm:a{engine="0"}=1 http_b=2 vllm:c=NaN');
    scraper = startScraper({ ...options, periodMs: 1e6 });
    await until(() => scraper!.samples(0, Infinity).length > 0);
    expect(scraper.samples(0, Infinity)).toEqual([
      { atNs: 10, series: 'vllm:a{engine="0"}', value: 1 },
      { atNs: 10, series: 'vllm:c', value: NaN },
    ]);
  });

  test('an interval is half-open', async () => {
    const { options } = world('vllm:a=1');
    scraper = startScraper({ ...options, periodMs: 1e6 });
    await until(() => scraper!.samples(0, Infinity).length === 1);
    expect(scraper.samples(10, 11)).toHaveLength(1);
    expect(scraper.samples(0, 10)).toEqual([]);
  });

  test('scrapes again and again', async () => {
    const { state, options } = world('vllm:a=1');
    scraper = startScraper(options);
    await until(() => state.fetches >= 3);
    expect(scraper.samples(0, Infinity).length).toBeGreaterThanOrEqual(2);
  });

  test('a scrape out of turn gives text and all values, and is kept', async () => {
    const { options } = world('vllm:a=1 http_b=2');
    scraper = startScraper({ ...options, periodMs: 1e6 });
    await until(() => scraper!.samples(0, Infinity).length === 1);
    const scrape = await scraper.scrapeNow();
    expect(scrape).toMatchObject({ atNs: 20, text: 'vllm:a=1 http_b=2' });
    expect(scrape?.values.get('http_b')).toBe(2);
    expect(scraper.samples(20, 21)).toHaveLength(1);
  });

  test('a server that does not answer is counted, not thrown', async () => {
    const { options, state } = world(null);
    scraper = startScraper({ ...options, periodMs: 1e6 });
    await until(() => scraper!.failures(0, Infinity) === 1);
    expect(await scraper.scrapeNow()).toBeNull();
    expect(scraper.samples(0, Infinity)).toEqual([]);
    state.page = 'vllm:a=3';
    expect((await scraper.scrapeNow())?.values.get('vllm:a')).toBe(3);
  });

  test('a fetch that rejects counts as no answer', async () => {
    const { options } = world('');
    scraper = startScraper({ ...options, periodMs: 1e6, fetchText: () => Promise.reject(new Error('refused')) });
    await until(() => scraper!.failures(0, Infinity) === 1);
  });

  test('a page that cannot be parsed counts as no answer, and the beat goes on', async () => {
    const { state, options } = world('vllm:a=1');
    const parse = () => {
      throw new Error('not a page');
    };
    scraper = startScraper({ ...options, parse });
    await until(() => state.fetches >= 3);
    expect(scraper.failures(0, Infinity)).toBeGreaterThanOrEqual(2);
  });

  test('stop ends the beat, also in the middle of a pause', async () => {
    const { state, options } = world('vllm:a=1');
    scraper = startScraper({ ...options, periodMs: 1e7 });
    await until(() => state.fetches === 1);
    await scraper.stop();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(state.fetches).toBe(1);
  });
});
