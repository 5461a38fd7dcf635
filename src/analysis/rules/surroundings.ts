// What happened around the load: strangers and faults on the boards, the wall clock, the slots of a closed loop.

import {
  type BoardSurroundings,
  NS_PER_MS,
  NS_PER_S,
  type RuleAct,
  type SurroundingsEvidence,
} from '../../core/index.ts';
import { meanInFlight } from '../in-flight.ts';
import { foreignProcesses } from './foreign.ts';
import {
  type Finding,
  hit,
  noEvidence,
  notApplicable,
  notEvaluated,
  pass,
  type Rule,
  type RuleInput,
  worstFinding,
} from './rule.ts';

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

const unmeasured = (rule: string, code: string, act: Rule['act'], why: string): Rule => ({
  rule,
  code,
  act,
  check: () => notEvaluated(`not measured by this version: ${why}`),
});

/** Codes by which a board or a driver says that it has no such thing. */
const ABSENT = new Set([
  'NOT_SUPPORTED',
  'FUNCTION_NOT_FOUND',
  'VGPU_ECC_NOT_SUPPORTED',
  'ARGUMENT_VERSION_MISMATCH',
  'DEPRECATED',
]);

/** The evidence of the whole launch up to the window's end; null when there is none or it ends before. */
function watchedThrough({ facts, boards }: RuleInput): SurroundingsEvidence | null {
  const { surroundings, phases } = facts;
  if (surroundings === null || surroundings.boards.length < Math.max(1, boards.length)) return null;
  return (surroundings.lastPollNs ?? Number.NEGATIVE_INFINITY) < phases.window.endNs ? null : surroundings;
}

const NOT_WATCHED = 'the boards were not watched to the end of the window';

/** Each board by itself: the worst answer counts, with the number of its board. */
function onEveryBoard(act: RuleAct, judge: (seen: BoardSurroundings, input: RuleInput) => Finding): Rule['check'] {
  return (input) => {
    const seen = watchedThrough(input);
    return seen === null
      ? noEvidence(NOT_WATCHED)
      : worstFinding(
          act,
          seen.boards.map((board) => judge(board, input)),
        );
  };
}

function foreign(
  { stretches, afterLoad, failedPolls, processesCode }: BoardSurroundings,
  { facts }: RuleInput,
): Finding {
  if (stretches.length === 0) {
    const text = `the compute processes on the board cannot be listed: ${processesCode}`;
    const unlisted = { failedPolls, processesCode };
    if (!ABSENT.has(processesCode ?? '')) return noEvidence(text, unlisted);
    return hit(unlisted, text, { code: 'processes_unseen', act: 'W' });
  }
  if (afterLoad === null) return noEvidence('the processes were not listed once the server had loaded');
  const listedToNs = stretches.at(-1)!.toNs;
  if (listedToNs < facts.phases.window.endNs) {
    const text = `the compute processes could not be listed to the end of the window: ${processesCode}`;
    return noEvidence(text, { listedToNs, failedPolls, processesCode });
  }
  const { strangers, flags, own } = foreignProcesses(stretches, afterLoad);
  const polls = stretches.reduce((sum, stretch) => sum + stretch.polls, 0);
  const evidence = { polls, failedPolls, own, strangers, flags };
  if (strangers.length > 0) {
    const pids = [...new Set(strangers.map(({ pid }) => pid))].join(', ');
    return hit(evidence, `other compute processes were on the board during the launch: ${pids}`);
  }
  const loaded = stretches.filter(({ stage }) => stage === 'loaded');
  if (loaded.every(({ processes }) => processes.length === 0)) {
    const text = 'the board lists no process, not even the server: others would not be seen';
    return hit(evidence, text, { code: 'processes_unseen', act: 'W' });
  }
  return pass(
    evidence,
    flags.length === 0 ? 'the server alone was on the board' : 'the processes stayed those of the loaded server',
  );
}

function eccOrFault({ ecc, faults }: BoardSurroundings): Finding {
  const evidence = { ecc, faults };
  if (faults.sightings.length > 0) {
    const named = faults.sightings.map(({ kind, number }) =>
      number === null ? kind.replaceAll('_', ' ') : `Xid ${number}`,
    );
    return hit(evidence, `the driver reported faults of the board: ${[...new Set(named)].join(', ')}`);
  }
  if (ecc.first !== null && ecc.last !== null && ecc.last > ecc.first) {
    return hit(evidence, `${ecc.last - ecc.first} memory errors could not be corrected`);
  }
  const unseen = `driver faults are not visible here (${faults.code}), and were not judged`;
  const quiet = faults.source === 'none' ? unseen : `no driver fault by the ${faults.source.replace('_', ' ')}`;
  if (ecc.last === null && ABSENT.has(ecc.code ?? ''))
    return notApplicable(`the board counts no memory errors; ${quiet}`);
  if (ecc.code !== null) return noEvidence(`memory errors cannot be read: ${ecc.code}`, evidence);
  return pass(evidence, `no uncorrected memory error; ${quiet}`);
}

export const V22: Rule = {
  rule: 'V22',
  code: 'foreign_process',
  act: 'X',
  needsGpu: true,
  needsOwnBoard: true,
  check: onEveryBoard('X', foreign),
};
export const V23: Rule = {
  rule: 'V23',
  code: 'ecc_or_fault',
  act: 'L',
  needsGpu: true,
  needsOwnBoard: true,
  check: onEveryBoard('L', eccOrFault),
};
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
