// Labels of a point figure: arm and load beside their points, repeats of one pair under one label.

import type * as Plot from '@observablehq/plot';
import { plainText } from '../escape.ts';
import type { ReportModel } from '../model.ts';
import { energyPerToken } from '../words.ts';
import { type Box, type Placement, placeLabels } from './place.ts';
import { type CellPoint, FRAME, type Projection } from './point-frame.ts';
import type { PlotModule } from './spec.ts';
import { armStyle, MUTED, PAPER, shorten, textWidth } from './theme.ts';

interface Group {
  readonly label: string;
  readonly ink: string;
  readonly points: readonly CellPoint[];
}

const LABEL_PX = 11;
const LABEL_MAX_PX = 300;
const CORNER_PX = 12;
const LEADER_FROM_PX = 30;

/** Repeats of one arm and load share a label; invalid ones are counted in it. */
function groupsOf(model: ReportModel, points: readonly CellPoint[]): Group[] {
  const groups = new Map<string, CellPoint[]>();
  for (const point of points) {
    const { arm, load } = point.view.cell.key;
    const key = JSON.stringify([arm, load]);
    groups.set(key, [...(groups.get(key) ?? []), point]);
  }
  return [...groups.values()].map((members) => ({
    label: labelOf(members),
    ink: armStyle(model.manifest.arms.indexOf(members[0]!.view.cell.key.arm)).ink,
    points: members,
  }));
}

function labelOf(members: readonly CellPoint[]): string {
  const { view } = members[0]!;
  const invalid = members.filter((point) => !point.view.cell.valid).length;
  const single = members.length === 1;
  const state =
    invalid === 0 ? [] : [single ? view.marks.find((mark) => mark.startsWith('INVALID'))! : `${invalid} INVALID`];
  const repeats = single ? [] : [`${members.length} repeats`];
  const name = [view.cell.key.arm, view.cell.key.load, ...repeats, ...state].join(' · ');
  const value = single ? `: ${energyPerToken(view.cell)}` : '';
  return plainText(shorten(name, LABEL_PX, LABEL_MAX_PX) + value);
}

interface Centre {
  readonly x: number;
  readonly y: number;
}

function labelMark(plot: PlotModule, group: Group, at: Placement, centre: Centre): Plot.Markish {
  const text = { fontSize: LABEL_PX, fontWeight: 600, fill: group.ink, stroke: PAPER, strokeWidth: 4 };
  const place = { x: () => centre.x, y: () => centre.y, dx: at.dx, dy: at.dy, textAnchor: at.anchor };
  return plot.text([group.label], { ...place, ...text, text: (label: string) => label });
}

/** A thin line from a label that had to go far to its point. */
function leaderMark(
  plot: PlotModule,
  group: Group,
  at: Placement,
  centre: Centre,
  perPx: Projection['perPx'],
): Plot.Markish {
  const ends = {
    x1: () => centre.x,
    y1: () => centre.y,
    x2: () => centre.x + at.dx * perPx.x,
    y2: () => centre.y - (at.dy - Math.sign(at.dy) * LABEL_PX * 0.7) * perPx.y,
  };
  return plot.link([group], { ...ends, stroke: group.ink, strokeWidth: 0.75 });
}

/** The labels of all points, clear of each other and of the corner that says what is better. */
export function labelMarks(
  plot: PlotModule,
  model: ReportModel,
  points: readonly CellPoint[],
  projection: Projection,
  better: string | null,
): Plot.Markish[] {
  const groups = groupsOf(model, points);
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  const centres = groups.map(({ points }) => ({
    x: mean(points.map((point) => point.x)),
    y: mean(points.map((point) => point.y)),
  }));
  const items = groups.map((group, at) => {
    const x = projection.x(centres[at]!.x);
    const spread = Math.max(...group.points.map((point) => Math.abs(projection.x(point.x) - x)));
    return { label: group.label, x, y: projection.y(centres[at]!.y), reach: spread + 7 };
  });
  const placed = placeLabels(items, better === null ? [] : [cornerBox(better)], FRAME, LABEL_PX);
  const leaders = groups.flatMap((group, at) =>
    Math.abs(placed[at]!.dy) < LEADER_FROM_PX
      ? []
      : [leaderMark(plot, group, placed[at]!, centres[at]!, projection.perPx)],
  );
  return [...leaders, ...groups.map((group, at) => labelMark(plot, group, placed[at]!, centres[at]!))];
}

function cornerBox(text: string): Box {
  const { left, top } = FRAME;
  return { left, right: left + 20 + textWidth(text, CORNER_PX, true), top, bottom: top + 24 };
}

/** What the upper left corner is. */
export function cornerMark(plot: PlotModule, better: string): Plot.Markish {
  const font = { fontSize: CORNER_PX, fontWeight: 'bold', fill: MUTED };
  return plot.text([better], { text: (text: string) => text, frameAnchor: 'top-left', dx: 10, dy: 9, ...font });
}
