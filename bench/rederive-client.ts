// Entry of the process that derives a capture again, all that `tokbench verify` does, and says what that cost.

import { verifyRun } from '../src/analysis/verify.ts';
import { answerParent } from './child.ts';
import { cpuUs, peakRssMb } from './process-cost.ts';
import type { RederiveCost } from './rederive.ts';

answerParent<{ readonly dir: string }, RederiveCost>(async ({ dir }) => {
  const began = performance.now();
  const before = cpuUs();
  const report = await verifyRun(dir);
  const cpuS = (cpuUs() - before) / 1e6;
  const wallS = (performance.now() - began) / 1000;
  if (report.status === 'failed' || report.cellsChecked !== 1) {
    throw new Error(`the made-up capture does not verify: ${JSON.stringify(report.problems.slice(0, 3))}`);
  }
  return { cpuS, wallS, peakRssMb: peakRssMb(), numbersChecked: report.numbersChecked };
});
