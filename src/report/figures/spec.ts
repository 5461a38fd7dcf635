// What a figure is before it is drawn: panels of Plot options under one title. SVG and PNG come from the same one.

import type * as Plot from '@observablehq/plot';

export type PlotModule = typeof Plot;

export interface Panel {
  readonly height: number;
  /** Bold line above the panel; null for none. */
  readonly heading: string | null;
  readonly options: Plot.PlotOptions;
}

export interface FigureSpec {
  readonly kind: 'figure';
  /** Stem of the file names. */
  readonly name: string;
  readonly title: string;
  /** What is plotted, of what, with the marks of the cell. */
  readonly subtitle: string;
  /** The figure in words, for those who do not see it. */
  readonly alt: string;
  readonly panels: readonly Panel[];
  /** Small print under the panels. */
  readonly notes: readonly string[];
  /** Anchor of the one cell that it shows; null when it shows several. */
  readonly cell: string | null;
}

/** A figure that could not be drawn, and why. */
export interface SkippedFigure {
  readonly kind: 'skipped';
  readonly name: string;
  readonly reason: string;
}

export type FigureResult = FigureSpec | SkippedFigure;

export const skipped = (name: string, reason: string): SkippedFigure => ({ kind: 'skipped', name, reason });
