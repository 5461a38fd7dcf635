// Draws figures: Observable Plot on a small DOM for SVG, resvg with the shipped font for PNG. Loaded when first used.

import { fileURLToPath } from 'node:url';
import { plainText } from '../escape.ts';
import { compose } from './compose.ts';
import type { Canvas, SvgDocument } from './dom.ts';
import type { FigureSpec, PlotModule } from './spec.ts';

export interface DrawnFigure {
  readonly svg: string;
  readonly png: Uint8Array;
}

export interface FigureKit {
  readonly plot: PlotModule;
  /** Text of a complete SVG document. */
  svg(spec: FigureSpec, marks: readonly string[]): string;
  /** PNG at twice the nominal size. */
  png(svg: string): Uint8Array;
}

const FONTS = ['DejaVuSans.ttf', 'DejaVuSans-Bold.ttf'].map((name) =>
  fileURLToPath(new URL(`../assets/${name}`, import.meta.url)),
);

/** Imports the drawing libraries (about 0.2 s) and shares one document among all figures. */
export async function openKit(): Promise<FigureKit> {
  const [plot, { parseHTML }, { Resvg }] = await Promise.all([
    import('@observablehq/plot'),
    import('linkedom'),
    import('@resvg/resvg-js'),
  ]);
  const document: SvgDocument = parseHTML('<!doctype html><html><body></body></html>').document;
  const canvas: Canvas = { plot, document };
  const font = { loadSystemFonts: false, fontFiles: FONTS, defaultFontFamily: 'DejaVu Sans' };
  return {
    plot,
    svg: (spec, marks) => `${plainText(compose(canvas, spec, marks).toString())}\n`,
    png: (svg) => new Resvg(svg, { fitTo: { mode: 'zoom', value: 2 }, font, logLevel: 'error' }).render().asPng(),
  };
}
