// Puts the panels of a figure under one title into one SVG document, with the run's watermark inside the image.

import { type Attributes, type Canvas, element, rootElement, type SvgNode } from './dom.ts';
import type { FigureSpec } from './spec.ts';
import { FONT_FAMILY, GRID, INK, MARGIN_LEFT, MARGIN_RIGHT, MUTED, PAPER, WIDTH, wrapText } from './theme.ts';
import { watermark } from './watermark.ts';

const EDGE = 16;
const ROUNDED = [
  'd',
  'x',
  'y',
  'x1',
  'x2',
  'y1',
  'y2',
  'cx',
  'cy',
  'r',
  'dx',
  'dy',
  'width',
  'height',
  'transform',
  'points',
];

/** A panel as a group: a nested <svg> would clip labels that reach over its edge. */
function panelGroup(canvas: Canvas, spec: FigureSpec, at: number, top: number): SvgNode {
  const panel = spec.panels[at]!;
  const svg: SvgNode = canvas.plot.plot({
    marginLeft: MARGIN_LEFT,
    marginRight: MARGIN_RIGHT,
    width: WIDTH,
    height: panel.height,
    ...panel.options,
    document: canvas.document,
  });
  if (svg.nodeName.toLowerCase() !== 'svg')
    throw new Error(`figure ${spec.name}: a legend turned panel ${at} into HTML`);
  const group = element(canvas, 'g', {
    transform: `translate(0,${top})`,
    fill: 'currentColor',
    color: INK,
    'font-size': 11,
    'text-anchor': 'middle',
  });
  for (const child of [...svg.childNodes]) if (child.nodeName.toLowerCase() !== 'style') group.appendChild(child);
  return group;
}

function texts(canvas: Canvas, lines: readonly string[], top: number, size: number, extra: Attributes): SvgNode[] {
  return lines.map((line, at) =>
    element(canvas, 'text', { x: EDGE, y: top + at * size * 1.4, 'font-size': size, fill: MUTED, ...extra }, line),
  );
}

function roundNumbers(root: SvgNode): void {
  for (const node of [root, ...root.querySelectorAll('*')]) {
    for (const name of ROUNDED) {
      const value = node.getAttribute(name);
      if (value !== null)
        node.setAttribute(
          name,
          value.replace(/-?\d+\.\d{3,}/g, (text) => String(+Number(text).toFixed(2))),
        );
    }
  }
}

/** Draws the figure as one `<svg>` element. Marks are words such as SYNTHETIC that must stand inside the image. */
export function compose(canvas: Canvas, spec: FigureSpec, marks: readonly string[]): SvgNode {
  const inner = WIDTH - 2 * EDGE;
  const title = wrapText(spec.title, 17, inner);
  const subtitle = wrapText(spec.subtitle, 12, inner);
  const notes = spec.notes.flatMap((note) => wrapText(note, 11, inner));
  const parts: SvgNode[] = texts(canvas, title, 28, 17, { 'font-weight': 'bold', fill: INK });
  let y = 28 + (title.length - 1) * 24 + 21;
  parts.push(...texts(canvas, subtitle, y, 12, {}));
  y += subtitle.length * 17 + 2;
  const panelsTop = y;
  for (const [at, panel] of spec.panels.entries()) {
    if (panel.heading !== null) {
      y += 18;
      parts.push(
        ...texts(canvas, wrapText(panel.heading, 12, inner).slice(0, 1), y, 12, { 'font-weight': 'bold', fill: INK }),
      );
      y += 4;
    }
    parts.push(panelGroup(canvas, spec, at, y));
    y += panel.height;
  }
  const panelsBottom = y;
  parts.push(...texts(canvas, notes, y + 18, 11, {}));
  const height = Math.ceil(y + notes.length * 15.4 + 18);
  const root = rootElement(canvas, {
    viewBox: `0 0 ${WIDTH} ${height}`,
    width: WIDTH,
    height,
    role: 'img',
    'aria-labelledby': `${spec.name}-title ${spec.name}-desc`,
    'font-family': FONT_FAMILY,
  });
  root.append(
    element(canvas, 'title', { id: `${spec.name}-title` }, spec.title),
    element(canvas, 'desc', { id: `${spec.name}-desc` }, spec.alt),
    element(canvas, 'rect', { width: WIDTH, height, fill: PAPER }),
    element(canvas, 'rect', {
      class: 'frame',
      x: 0.5,
      y: 0.5,
      width: WIDTH - 1,
      height: height - 1,
      fill: 'none',
      stroke: GRID,
    }),
    ...parts,
    ...watermark(canvas, marks, { top: panelsTop, bottom: panelsBottom }),
  );
  roundNumbers(root);
  return root;
}
