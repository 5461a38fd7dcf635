// GPU samples in memory, row by row as the sampler thread sends them; cut into columns on demand.

import { GPU_SAMPLE_COLUMNS, type GpuSample, type GpuSampleTable, gpuSampleTable, NS_PER_S } from '../core/index.ts';

const WIDTH = GPU_SAMPLE_COLUMNS.length;

/** Packs samples into one array, row after row in the order of GPU_SAMPLE_COLUMNS: cheap to hand to another thread. */
export function packSamples(samples: readonly GpuSample[]): Float64Array<ArrayBuffer> {
  const rows = new Float64Array(samples.length * WIDTH);
  samples.forEach((sample, index) => {
    rows.set(
      GPU_SAMPLE_COLUMNS.map((name) => sample[name]),
      index * WIDTH,
    );
  });
  return rows;
}

export function unpackSamples(rows: Float64Array): GpuSample[] {
  return Array.from(
    { length: rows.length / WIDTH },
    (_, row) => Object.fromEntries(GPU_SAMPLE_COLUMNS.map((name, at) => [name, rows[row * WIDTH + at]])) as GpuSample,
  );
}

export class SampleStore {
  readonly #samples: GpuSample[] = [];
  /** Of the first board. */
  #latest: GpuSample | null = null;

  append(samples: readonly GpuSample[]): void {
    for (const sample of samples) {
      this.#samples.push(sample);
      if ((sample.board || 0) === 0) this.#latest = carryForward(this.#latest, sample);
    }
  }

  /** The newest sample; fields that it did not read are carried from the last one that did. */
  latest(): GpuSample | null {
    return this.#latest;
  }

  /** Samples with fromNs <= atNs < toNs. */
  between(fromNs: number, toNs: number): GpuSample[] {
    return this.#samples.slice(this.#firstAtOrAfter(fromNs), this.#firstAtOrAfter(toNs));
  }

  table(fromNs: number, toNs: number): GpuSampleTable {
    return gpuSampleTable(this.between(fromNs, toNs));
  }

  /** Stamps never go back, so the place of an instant is found by halving. */
  #firstAtOrAfter(atNs: number): number {
    let [low, high] = [0, this.#samples.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#samples[middle]!.atNs < atNs) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function carryForward(previous: GpuSample | null, sample: GpuSample): GpuSample {
  if (!previous) return sample;
  const entries = GPU_SAMPLE_COLUMNS.map((name) => [name, Number.isNaN(sample[name]) ? previous[name] : sample[name]]);
  return Object.fromEntries(entries) as GpuSample;
}

/** Mean power of all boards over the samples, W; null as soon as one board has no reading. */
export function meanPowerW(samples: readonly GpuSample[]): number | null {
  const boards = Map.groupBy(samples, (sample) => sample.board || 0);
  if (boards.size === 0) return null;
  return [...boards.values()].reduce<number | null>((sum, board) => {
    const watts = boardPowerW(board);
    return sum === null || watts === null ? null : sum + watts;
  }, 0);
}

/**
 * Mean power of one board, W: from the first to the last change point of the energy counter, else the mean of the
 * average-power readings, else of the instantaneous ones; null when there is none of them. For watching, not for results.
 */
function boardPowerW(samples: readonly GpuSample[]): number | null {
  const fromCounter = counterPowerW(samples);
  if (fromCounter !== null) return fromCounter;
  for (const name of ['powerAverageMw', 'powerInstantMw'] as const) {
    const readings = samples.map((sample) => sample[name]).filter((value) => !Number.isNaN(value));
    if (readings.length > 0) return readings.reduce((sum, value) => sum + value, 0) / readings.length / 1000;
  }
  return null;
}

function counterPowerW(samples: readonly GpuSample[]): number | null {
  const read = samples.filter((sample) => !Number.isNaN(sample.energyMj));
  const changes = read.filter((sample, index) => index > 0 && sample.energyMj > read[index - 1]!.energyMj);
  const [first, last] = [changes.at(0), changes.at(-1)];
  if (!first || !last || first === last) return null;
  return (last.energyMj - first.energyMj) / 1000 / ((last.atNs - first.atNs) / NS_PER_S);
}
