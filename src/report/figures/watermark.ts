// The run's marks inside the image: diagonal and faint over the data, and once in plain ink at the edge.

import { type Canvas, element, type SvgNode } from './dom.ts';
import { INK, LIMIT, textWidth, WIDTH } from './theme.ts';

const REPEAT_EVERY = 300;

/** Elements to lay over the panels between `top` and `bottom`, px. None when the run has no marks. */
export function watermark(
  canvas: Canvas,
  marks: readonly string[],
  area: { readonly top: number; readonly bottom: number },
): SvgNode[] {
  if (marks.length === 0) return [];
  const text = marks.join(' · ');
  const size = Math.min(64, (WIDTH * 0.8) / textWidth(text, 1, true));
  const height = area.bottom - area.top;
  const copies = Math.max(1, Math.round(height / REPEAT_EVERY));
  const group = element(canvas, 'g', {
    class: 'watermark',
    fill: INK,
    'fill-opacity': 0.1,
    'font-size': size.toFixed(1),
    'font-weight': 'bold',
    'text-anchor': 'middle',
    'pointer-events': 'none',
  });
  for (let copy = 0; copy < copies; copy++) {
    const y = area.top + (height * (copy + 0.5)) / copies;
    group.appendChild(
      element(canvas, 'text', { transform: `translate(${WIDTH / 2},${y.toFixed(1)}) rotate(-18)`, dy: '0.35em' }, text),
    );
  }
  const stamp = element(
    canvas,
    'text',
    { x: WIDTH - 16, y: 24, 'font-size': 11, 'font-weight': 'bold', fill: LIMIT, 'text-anchor': 'end' },
    text,
  );
  return [group, stamp];
}
