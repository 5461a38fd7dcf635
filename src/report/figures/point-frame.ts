// The frame of a point figure: what a point is, and where it falls between data and pixels.

import type { CellView } from '../model.ts';
import type { Box } from './place.ts';
import { domainFromZero, paddedDomain } from './shared.ts';
import { WIDTH } from './theme.ts';

export interface CellPoint {
  readonly view: CellView;
  readonly x: number;
  readonly y: number;
  /** Half-width of the energy bound, on the axis that carries energy. */
  readonly bound: number;
}

export interface PointAxes {
  readonly xLabel: string;
  readonly yLabel: string;
  readonly energyAxis: 'x' | 'y';
  /** Axes that begin at zero, so that lengths compare as the ratios do. */
  readonly fromZero: { readonly x: boolean; readonly y: boolean };
  /** What the upper left corner is, with its arrow; null for nothing. */
  readonly better: string | null;
}

export const HEIGHT = 380;
export const MARGINS = { marginTop: 12, marginBottom: 46, marginLeft: 70, marginRight: 30 };
export const FRAME: Box = {
  left: MARGINS.marginLeft,
  right: WIDTH - MARGINS.marginRight,
  top: MARGINS.marginTop,
  bottom: HEIGHT - MARGINS.marginBottom,
};

export interface Projection {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
  readonly domains: { readonly x: [number, number]; readonly y: [number, number] };
  /** Data units per pixel. */
  readonly perPx: { readonly x: number; readonly y: number };
}

/** Domains with air for labels, and the way from data to pixels. Needs at least one point. */
export function projectionOf(points: readonly CellPoint[], axes: PointAxes): Projection {
  const reach = (axis: 'x' | 'y') =>
    points.flatMap((point) =>
      axes.energyAxis === axis ? [point[axis] - point.bound, point[axis] + point.bound] : [point[axis]],
    );
  const domainOf = (axis: 'x' | 'y') =>
    axes.fromZero[axis] ? domainFromZero(reach(axis), 0.3) : paddedDomain(reach(axis), 0.3);
  const domains = { x: domainOf('x'), y: domainOf('y') };
  const share = (value: number, [low, high]: [number, number]) => (value - low) / (high - low);
  return {
    domains,
    perPx: {
      x: (domains.x[1] - domains.x[0]) / (FRAME.right - FRAME.left),
      y: (domains.y[1] - domains.y[0]) / (FRAME.bottom - FRAME.top),
    },
    x: (value) => FRAME.left + share(value, domains.x) * (FRAME.right - FRAME.left),
    y: (value) => FRAME.bottom - share(value, domains.y) * (FRAME.bottom - FRAME.top),
  };
}
