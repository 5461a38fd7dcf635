// Pieces that several figures share: bands of the load, domains with air, subtitles.

import type * as Plot from '@observablehq/plot';
import type { Band, CellView } from '../model.ts';
import type { PlotModule } from './spec.ts';
import { INK, LIMIT, MARGIN_LEFT, MARGIN_RIGHT, MUTED, textWidth, WIDTH } from './theme.ts';

/** `[low, high]` widened by `air` of its span on each side; a single value gets a span of a fifth of itself. */
export function paddedDomain(values: readonly number[], air = 0.12): [number, number] {
  const finite = values.filter(Number.isFinite);
  const low = Math.min(...finite);
  const high = Math.max(...finite);
  const span = high - low || Math.abs(high) * 0.2 || 1;
  return [low - air * span, high + air * span];
}

/** `[0, high]` with air above for labels. */
export function domainFromZero(values: readonly number[], air = 0.12): [number, number] {
  const high = Math.max(0, ...values.filter(Number.isFinite));
  return [0, high === 0 ? 1 : high * (1 + air)];
}

/** First to last second that the bands cover. */
export function bandDomain(bands: readonly Band[]): [number, number] {
  return [Math.min(0, ...bands.map((band) => band.fromS)), Math.max(1, ...bands.map((band) => band.toS))];
}

const isWindow = (band: Band): boolean => band.name === 'window';

/** Shades the measured window, draws the borders of the others and names each where its name fits. */
export function bandMarks(plot: PlotModule, bands: readonly Band[], named: boolean): Plot.Markish[] {
  const [from, to] = bandDomain(bands);
  const pxPerS = (WIDTH - MARGIN_LEFT - MARGIN_RIGHT) / (to - from);
  const fits = bands.filter((band) => textWidth(band.name, 10) < (band.toS - band.fromS) * pxPerS - 2);
  return [
    plot.rectX(bands.filter(isWindow), { x1: 'fromS', x2: 'toS', fill: '#0072b2', fillOpacity: 0.08 }),
    plot.ruleX([...new Set(bands.flatMap((band) => [band.fromS, band.toS]))], { stroke: '#c3cad3', strokeWidth: 0.75 }),
    ...(named
      ? [
          plot.text(fits, {
            x: (band: Band) => (band.fromS + band.toS) / 2,
            text: 'name',
            frameAnchor: 'top',
            dy: -12,
            fontSize: 10,
            fill: (band: Band) => (isWindow(band) ? INK : MUTED),
          }),
        ]
      : []),
  ];
}

export function timeAxis(bands: readonly Band[], labelled: boolean): Plot.ScaleOptions {
  return {
    domain: bandDomain(bands),
    label: labelled ? 'seconds since the start of the load' : null,
    labelAnchor: 'center',
    labelArrow: 'none',
    ...(labelled ? {} : { tickFormat: () => '' }),
  };
}

/** A dashed line at a limit, named in the right margin: one word per line of `label`. */
export function limitMarks(plot: PlotModule, value: number, label: readonly string[]): Plot.Markish[] {
  const beside = { frameAnchor: 'right', textAnchor: 'start', dx: 6, lineAnchor: 'middle' } as const;
  return [
    plot.ruleY([value], { stroke: LIMIT, strokeDasharray: '5,3', strokeWidth: 1.25 }),
    plot.text([label.join('\n')], { y: value, text: (text: string) => text, ...beside, fontSize: 11, fill: LIMIT }),
  ];
}

/** The bands of the load itself, without soak and idle. */
export const loadBands = (view: CellView): Band[] => view.bands.filter((band) => band.fromS >= 0);

/** Title of the cell and the words that must stand beside it. */
export function cellSubtitle(view: CellView): string {
  return [view.title, ...view.marks].join(' · ');
}
