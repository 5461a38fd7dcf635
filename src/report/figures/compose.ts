// Puts the panels of a figure under one title into one SVG document, with the run's watermark inside the image.

import { type Attributes, type Canvas, element, rootElement, type SvgNode } from './dom.ts';
import type { FigureSpec } from './spec.ts';
import { FONT_FAMILY, GRID, INK, MARGIN_LEFT, MARGIN_RIGHT, MUTED, PAPER, WIDTH, wrapText } from './theme.ts';
import { watermark } from './watermark.ts';

const EDGE = 16;
const TITLE_PX = 17;
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

/** The elements of a figure from top to bottom, and where its panels and the whole of it end. */
interface Column {
  readonly parts: readonly SvgNode[];
  readonly panels: { readonly top: number; readonly bottom: number };
  readonly height: number;
}

function column(canvas: Canvas, spec: FigureSpec): Column {
  const inner = WIDTH - 2 * EDGE;
  const title = wrapText(spec.title, TITLE_PX, inner);
  const subtitle = wrapText(spec.subtitle, 12, inner);
  const notes = spec.notes.flatMap((note) => wrapText(note, 11, inner));
  const parts = texts(canvas, title, 28, TITLE_PX, { 'font-weight': 'bold', fill: INK });
  let y = 28 + (title.length - 1) * 24 + 21;
  parts.push(...texts(canvas, subtitle, y, 12, {}));
  y += subtitle.length * 17 + 2;
  const top = y;
  for (const [at, panel] of spec.panels.entries()) {
    if (panel.heading !== null) {
      const heading = wrapText(panel.heading, 12, inner).slice(0, 1);
      parts.push(...texts(canvas, heading, y + 18, 12, { 'font-weight': 'bold', fill: INK }));
      y += 22;
    }
    parts.push(panelGroup(canvas, spec, at, y));
    y += panel.height;
  }
  parts.push(...texts(canvas, notes, y + 18, 11, {}));
  return { parts, panels: { top, bottom: y }, height: Math.ceil(y + notes.length * 15.4 + 18) };
}

function paper(canvas: Canvas, height: number): SvgNode[] {
  const edge = { x: 0.5, y: 0.5, width: WIDTH - 1, height: height - 1, fill: 'none', stroke: GRID };
  return [
    element(canvas, 'rect', { width: WIDTH, height, fill: PAPER }),
    element(canvas, 'rect', { class: 'frame', ...edge }),
  ];
}

/** Draws the figure as one `<svg>` element. Marks are words such as SYNTHETIC that must stand inside the image. */
export function compose(canvas: Canvas, spec: FigureSpec, marks: readonly string[]): SvgNode {
  const { parts, panels, height } = column(canvas, spec);
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
    ...paper(canvas, height),
    ...parts,
    ...watermark(canvas, marks, panels),
  );
  roundNumbers(root);
  return root;
}
