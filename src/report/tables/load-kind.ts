// What only some kinds of load have to say: the tokens of a closed loop, the recovery from an overload.

import type { CellFile } from '../../core/index.ts';
import { withUnit } from '../format.ts';

/** Rows for the section of one cell; none for a load that is neither closed nor steps down. */
export function loadKindPairs({ load, metrics }: Pick<CellFile, 'load' | 'metrics'>): (readonly [string, string])[] {
  if (load.kind === 'closed') {
    return [['TPOT, all tokens of the window together', withUnit(metrics.pooledTpotMs, 'ms')]];
  }
  const stepsDown = load.steps?.some(({ rate }, step) => rate < (load.steps?.[step - 1]?.rate ?? 0));
  if (!stepsDown) return [];
  const never = 'not before arrivals ended';
  return [['promise kept again after the last step down', withUnit(metrics.recoveryS, 's', 3, never)]];
}
