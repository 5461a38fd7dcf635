// What happened around the load: the wall clock, and the rules whose inputs are not measured yet.

import { NS_PER_MS, NS_PER_S } from '../../core/index.ts';
import { meanInFlight } from '../in-flight.ts';
import { type Finding, hit, notApplicable, notEvaluated, pass, type Rule, type RuleInput } from './rule.ts';

const MAX_DRIFT_MS = 50;
const MAX_SLOT_DEVIATION = 0.01;

function clockStep({ facts }: RuleInput): Finding {
  const { start, end } = facts.anchors;
  const driftMs = Math.abs(end.wallMs - start.wallMs - (end.atNs - start.atNs) / NS_PER_MS);
  const evidence = { driftMs, elapsedMs: (end.atNs - start.atNs) / NS_PER_MS };
  if (Number.isNaN(driftMs)) return notEvaluated('no wall-clock anchors');
  if (driftMs > MAX_DRIFT_MS) return hit(evidence, `the wall clock moved by ${driftMs.toFixed(0)} ms during the load`);
  return pass(evidence, 'wall clock and monotonic clock agree');
}

const unmeasured = (rule: string, code: string, act: Rule['act'], why: string, needsGpu?: true): Rule => ({
  rule,
  code,
  act,
  ...(needsGpu ? { needsGpu } : {}),
  check: () => notEvaluated(`not measured by this version: ${why}`),
});

export const V22 = unmeasured('V22', 'foreign_process', 'X', 'the list of compute processes over the launch', true);
export const V23 = unmeasured('V23', 'ecc_or_fault', 'L', 'ECC counts and driver fault events', true);
export const V26 = unmeasured('V26', 'soak_unstable', 'W', "the temperature of the block's first cell");
export const V28 = unmeasured('V28', 'env_mismatch', 'X', 'a cell alone has no pair to compare with');
/** A loop that has sent all there was runs empty, so only one without an end holds its slots full. */
function concurrency({ facts: { load, phases }, requests: measured, meanInFlight: inFlight }: RuleInput): Finding {
  const { concurrency: slots, requests, thinkS } = load;
  if (load.kind !== 'closed' || slots === null) return notApplicable('the load is an open loop');
  if (requests !== null) return notApplicable('the load ends with its last request, so its slots run empty');
  // A slot that thinks is not idle: it is where the load wants it.
  const meanHeld = thinkS === 0 ? inFlight : meanInFlight(measured, phases.window, thinkS * NS_PER_S);
  const evidence = { slots, meanInFlight: inFlight, meanHeld };
  const off = Math.abs(meanHeld - slots) / slots;
  const thinking = thinkS === 0 ? '' : ' or thinking';
  const text = `${meanHeld.toFixed(2)} requests were in flight${thinking} on average, in ${slots} slots`;
  return off > MAX_SLOT_DEVIATION ? hit(evidence, text) : pass(evidence, text);
}

export const V27: Rule = { rule: 'V27', code: 'concurrency', act: 'X', check: concurrency };
export const V29: Rule = { rule: 'V29', code: 'clock_step', act: 'W', check: clockStep };
