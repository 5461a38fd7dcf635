// Does the client's verdict about itself follow from the figures that stand beside it?

import { CALIBRATION } from '../../capture/layout.ts';
import type { RunReader } from '../../capture/reader.ts';
import { ceilingOf, refusals } from '../client-proof.ts';
import { compareStored } from './compare.ts';
import type { Findings } from './findings.ts';

/** Recomputes the ceiling from its steps and the refusals from floor, ceiling and demand. */
export async function verifyCalibration(run: Pick<RunReader, 'calibration'>, found: Findings): Promise<void> {
  const file = await run.calibration();
  if (file === null || file.demand === null || file.floor === null || file.ceiling === null) return;
  const { demand, floor, ceiling, reuse, slo } = file;
  const { eventsPerS, extrapolated } = ceiling;
  compareStored(CALIBRATION, { eventsPerS, extrapolated }, ceilingOf(ceiling.steps), found);
  compareStored(CALIBRATION, file.refusals, refusals(slo, demand, { floor, ceiling, reuse }), found);
}
