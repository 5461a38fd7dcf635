// Where the labels of points go: beside their point, clear of points and of each other as far as there is room.

import { textWidth } from './theme.ts';

export interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** A label and the pixel position of what it names. */
export interface Labelled {
  readonly label: string;
  readonly x: number;
  readonly y: number;
  /** Half-width of what is drawn at the point. */
  readonly reach: number;
}

export interface Placement {
  readonly dx: number;
  readonly dy: number;
  readonly anchor: 'start' | 'end' | 'middle';
}

const HALF_LINE = 8;
const POINT = 8;

const overlap = (a: Box, b: Box): number =>
  Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left)) *
  Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));

function candidates(reach: number): Placement[] {
  const side = reach + 6;
  const beside = [0, -17, 17, -34, 34].flatMap((dy): Placement[] => [
    { dx: side, dy, anchor: 'start' },
    { dx: -side, dy, anchor: 'end' },
  ]);
  const over = [-18, 18, -36, 36, -54, 54].map((dy): Placement => ({ dx: 0, dy, anchor: 'middle' }));
  return [...beside, ...over];
}

function boxOf(item: Labelled, at: Placement, width: number): Box {
  const from = item.x + at.dx;
  const left = at.anchor === 'start' ? from : at.anchor === 'end' ? from - width : from - width / 2;
  return { left, right: left + width, top: item.y + at.dy - HALF_LINE, bottom: item.y + at.dy + HALF_LINE };
}

function outside(box: Box, frame: Box): number {
  const across = Math.max(0, frame.left - box.left) + Math.max(0, box.right - frame.right);
  return across + Math.max(0, frame.top - box.top) + Math.max(0, box.bottom - frame.bottom);
}

/** Greedy, in the given order: each label takes the position that covers least of what is already there. */
export function placeLabels(
  items: readonly Labelled[],
  obstacles: readonly Box[],
  frame: Box,
  sizePx: number,
): Placement[] {
  const taken: Box[] = [
    ...obstacles,
    ...items.map((item) => ({
      left: item.x - item.reach - 2,
      right: item.x + item.reach + 2,
      top: item.y - POINT,
      bottom: item.y + POINT,
    })),
  ];
  return items.map((item) => {
    const width = textWidth(item.label, sizePx) + 4;
    const scored = candidates(item.reach).map((at) => {
      const box = boxOf(item, at, width);
      const covered = taken.reduce((sum, other) => sum + overlap(box, other), 0);
      return { at, box, cost: covered + 400 * outside(box, frame) + Math.abs(at.dy) * 2 };
    });
    const best = scored.reduce((a, b) => (b.cost < a.cost ? b : a));
    taken.push(best.box);
    return best.at;
  });
}
