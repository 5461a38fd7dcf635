// Plain words for a cell: whether it keeps its promise, what its energy is or why there is none.

import { tooShort } from '../analysis/energy-words.ts';
import type { CellFile } from '../core/index.ts';
import { withBound } from './format.ts';
import { type CellView, exclusions } from './model.ts';

export const NO_GPU = 'not measured (no GPU)';

/** Why a cell has no energy figure. */
export function energyAbsent(cell: CellFile): string {
  if (cell.gpu.kind === 'none') return NO_GPU;
  const reason = cell.metrics.energyReason;
  return reason === null ? 'not defined' : `not measured (${reason})`;
}

export function energyPerToken(cell: CellFile): string {
  const { energy } = cell.metrics;
  if (energy === null) return energyAbsent(cell);
  const short = tooShort(cell);
  if (short !== null) return `none: ${withBound(energy.energyJ, energy.boundJ, 'J')} in a short window, ${short}`;
  return withBound(energy.jPerToken, energy.jPerTokenBound, 'J/token', 'not defined (no tokens in the window)');
}

/** The capacity criterion of METHOD 1.4 in words. */
export function promise(cell: CellFile): string {
  const { feasible } = cell.metrics;
  if (feasible === null) return 'cannot be judged';
  return feasible ? 'keeps the promise' : 'breaks the promise';
}

export function validity(view: CellView): string {
  if (view.cell.valid) return 'valid';
  return `INVALID (${exclusions(view.cell).join(', ') || 'see rules'})`;
}
