// The energy of a cell in one line, its bound beside every figure, the same on the terminal and in tables.

import type { CellFile } from '../core/index.ts';
import { shortestWindowS } from './rules/energy.ts';

/** `GPU board`, `2 GPU boards`, `GPU board, through DCGM`. */
export function energyScope({ gpu, windowEnergy }: Pick<CellFile, 'gpu' | 'windowEnergy'>): string {
  const boards = windowEnergy?.boards ?? gpu.counter?.boards ?? 1;
  const what = boards === 1 ? 'GPU board' : `${boards} GPU boards`;
  return gpu.kind === 'dcgm' ? `${what}, through DCGM` : what;
}

/**
 * Why the window is too short for a figure per token: `needs >= 54 s`; null when it is long enough, or has no energy.
 * Such a cell shows E with its bound and no J/token.
 */
export function tooShort({
  rules,
  metrics,
  windowEnergy,
}: Pick<CellFile, 'rules' | 'metrics' | 'windowEnergy'>): string | null {
  const isHit = rules.some(({ rule, status }) => rule === 'V11' && status === 'hit');
  if (!isHit || windowEnergy === null) return null;
  const neededS = shortestWindowS(windowEnergy, metrics.windowS);
  return neededS === null ? 'no power was drawn' : `needs >= ${Math.ceil(neededS)} s`;
}

/** One line per other scope, labelled: `1234.5 J in package-0 (RAPL, this machine's CPUs; beside the boards, in no J/token)`. */
export function otherScopeLines({ metrics }: Pick<CellFile, 'metrics'>): string[] {
  return metrics.otherScopes.map(({ scope, source, energyJ, longestGapS, reason }) => {
    const what = source === 'rapl' ? 'RAPL' : 'external meter';
    if (energyJ === null) return `${scope} (${what}): not measured, ${reason}`;
    const gap = longestGapS === null ? '' : `, read every ${longestGapS.toFixed(1)} s or less`;
    return `${scope} (${what}): ${energyJ.toFixed(1)} J${gap}; in none of the figures of the boards`;
  });
}

/** `0.1234 ± 0.0003 J/token, 12000.0 ± 26.7 J, 200.0 ± 0.4 W (GPU board)`; without J/token where the window is too short. */
export function energyLine(cell: CellFile): string {
  const { energy, energyReason, windowS } = cell.metrics;
  if (energy === null) return `not measured (${energyReason ?? 'no reason kept'})`;
  const total = `${energy.energyJ.toFixed(1)} ± ${energy.boundJ.toFixed(1)} J`;
  const power = `${energy.meanPowerW.toFixed(1)} ± ${(energy.boundJ / windowS).toFixed(1)} W`;
  const short = tooShort(cell);
  const { jPerToken, jPerTokenBound } = energy;
  const perToken =
    short !== null
      ? `short: no J/token, ${short}`
      : jPerToken === null
        ? 'J/token not known'
        : `${jPerToken.toFixed(4)} ± ${(jPerTokenBound ?? 0).toFixed(4)} J/token`;
  return `${perToken}, ${total}, ${power} (${energyScope(cell)})`;
}
