// Scrapes /metrics at a steady beat and keeps the series that were asked for, each with the instant of its answer.

import { type Clock, type MetricSample, NS_PER_MS } from '../core/index.ts';

export interface ScraperOptions {
  /** Raw text of the page; null (or a rejection) when the server did not answer. */
  readonly fetchText: () => Promise<string | null>;
  /** Text to values by full series name with labels; what it throws counts as no answer. */
  readonly parse: (text: string) => ReadonlyMap<string, number>;
  /** Only series whose name starts with one of these are kept. */
  readonly prefixes: readonly string[];
  readonly originNs: bigint;
  readonly clock: Clock;
  readonly periodMs: number;
}

export interface Scrape {
  /** End of the answer. */
  readonly atNs: number;
  readonly text: string;
  /** Every series of the page, kept or not. */
  readonly values: ReadonlyMap<string, number>;
}

export interface Scraper {
  /** Kept samples with fromNs <= atNs < toNs, in the order of their scrapes. */
  samples(fromNs: number, toNs: number): MetricSample[];
  /** Scrapes of the interval that got no page. */
  failures(fromNs: number, toNs: number): number;
  /** One scrape out of turn, kept like the others; null when the server does not answer with a page. */
  scrapeNow(): Promise<Scrape | null>;
  /** Ends the beat and waits for a scrape in flight. Idempotent. */
  stop(): Promise<void>;
}

class BeatScraper implements Scraper {
  readonly #options: ScraperOptions;
  readonly #scrapes: { readonly atNs: number; readonly kept: readonly (readonly [string, number])[] }[] = [];
  readonly #failedAtNs: number[] = [];
  readonly #stopping = new AbortController();
  readonly #loop: Promise<void>;

  constructor(options: ScraperOptions) {
    this.#options = options;
    this.#loop = this.#beat();
  }

  samples(fromNs: number, toNs: number): MetricSample[] {
    return this.#scrapes
      .filter(({ atNs }) => fromNs <= atNs && atNs < toNs)
      .flatMap(({ atNs, kept }) => kept.map(([series, value]) => ({ atNs, series, value })));
  }

  failures(fromNs: number, toNs: number): number {
    return this.#failedAtNs.filter((atNs) => fromNs <= atNs && atNs < toNs).length;
  }

  async scrapeNow(): Promise<Scrape | null> {
    const scrape = await this.#scrape().catch(() => null);
    if (scrape === null) {
      this.#failedAtNs.push(this.#nowNs());
      return null;
    }
    const { prefixes } = this.#options;
    const kept = [...scrape.values].filter(([series]) => prefixes.some((prefix) => series.startsWith(prefix)));
    this.#scrapes.push({ atNs: scrape.atNs, kept });
    return scrape;
  }

  async #scrape(): Promise<Scrape | null> {
    const { fetchText, parse } = this.#options;
    const text = await fetchText();
    const atNs = this.#nowNs();
    return text === null ? null : { atNs, text, values: parse(text) };
  }

  stop(): Promise<void> {
    this.#stopping.abort();
    return this.#loop;
  }

  #nowNs(): number {
    return Number(this.#options.clock.monotonicNs() - this.#options.originNs);
  }

  /** On a fixed grid: a slow answer skips beats, it does not shift them, and two scrapes never overlap. */
  async #beat(): Promise<void> {
    const periodNs = this.#options.periodMs * NS_PER_MS;
    const startNs = this.#nowNs();
    while (!this.#stopping.signal.aborted) {
      await this.scrapeNow();
      const beats = Math.floor((this.#nowNs() - startNs) / periodNs) + 1;
      await this.#pause((startNs + beats * periodNs - this.#nowNs()) / NS_PER_MS);
    }
  }

  #pause(ms: number): Promise<void> {
    const { signal } = this.#stopping;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal.addEventListener('abort', done);
    });
  }
}

/** Starts scraping at once; it goes on until `stop`. */
export function startScraper(options: ScraperOptions): Scraper {
  return new BeatScraper(options);
}
