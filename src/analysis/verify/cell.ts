// One cell of a capture, judged again from its raw records and compared with what cell.json says.

import { CELL_FILES, cellPath, launchFile } from '../../capture/layout.ts';
import type { RunReader } from '../../capture/reader.ts';
import { type CellFile, type LaunchFile, VLLM_METRICS } from '../../core/index.ts';
import { assessCell, type CellAssessment } from '../cell.ts';
import { edgeCounters } from '../edge-counters.ts';
import { compareStored } from './compare.ts';
import type { Findings } from './findings.ts';
import { checkRecords } from './records.ts';
import { checkSchedule } from './schedule.ts';

/** Fields that need the launch's idle measurement: only launch.json says when it was taken. */
const FROM_IDLE_LOADED = new Set(
  ['idleLoadedW', 'idleLoadedBoundW', 'marginalJPerToken', 'marginalJPerTokenBound'].map(
    (name) => `metrics.energy.${name}`,
  ),
);

/** @param launch null: the run was killed before launch.json was written */
export async function verifyCell(
  run: RunReader,
  cell: CellFile,
  launch: LaunchFile | null,
  found: Findings,
): Promise<void> {
  const path = cellPath(cell.key, 'cell');
  const requests = await run.requests(cell.key);
  const { metrics, windowEnergy, boards, rules, valid, labels, ...facts } = cell;
  const files = {
    requests: cellPath(cell.key, 'requests'),
    events: cellPath(cell.key, 'events'),
    schedule: cellPath(cell.key, 'schedule'),
  };
  checkSchedule(files, cell, await run.schedule(cell.key), requests, found);
  checkRecords(files, cell, requests, found);
  const recomputed = assessCell({
    facts,
    requests,
    gpu: await run.gpuSamples(cell.key),
    metrics: await run.metricSamples(cell.key),
    idleLoaded: launch?.idleLoaded ?? null,
    idleBare: run.manifest.idleBare,
    pricePerHour: run.manifest.pricePerHour,
  });
  const skip = launch === null ? FROM_IDLE_LOADED : new Set<string>();
  if (launch === null) {
    found.notes.push(`${path}: ${launchFile(cell.key)} was never written, so its idle power cannot be derived again`);
  }
  compareStored(path, named({ metrics, windowEnergy, boards, rules, valid, labels }), named(recomputed), found, skip);
  await checkCounters(run, cell, found);
  checkFacts(run, cell, launch, found);
}

/** The assessment with its rules by name, so that a difference reads `rules.V11.status`. */
function named(assessment: CellAssessment) {
  const { rules, ...rest } = assessment;
  return {
    ...rest,
    ruleNames: rules.map((outcome) => outcome.rule),
    rules: Object.fromEntries(rules.map((outcome) => [outcome.rule, outcome])),
  };
}

/** The counters at both edges, from the raw text of the scrapes. */
async function checkCounters(run: RunReader, cell: CellFile, found: Findings): Promise<void> {
  const { start, end } = await run.edges(cell.key);
  const path = cellPath(cell.key, 'cell');
  for (const [name, text, stored] of [
    ['countersAtStart', start, cell.server.countersAtStart],
    ['countersAtEnd', end, cell.server.countersAtEnd],
  ] as const) {
    compareStored(path, { [name]: stored }, { [name]: text === null ? null : edgeCounters(text, VLLM_METRICS) }, found);
  }
}

function checkFacts(run: RunReader, cell: CellFile, launch: LaunchFile | null, found: Findings): void {
  const path = cellPath(cell.key, 'cell');
  const { manifest } = run;
  found.require(cell.synthetic === manifest.synthetic, path, 'synthetic', {
    got: cell.synthetic,
    want: manifest.synthetic,
  });
  compareStored(path, { slo: cell.slo }, { slo: manifest.slo }, found);
  compareStored(path, { counter: cell.gpu.counter }, { counter: manifest.counter }, found);
  found.require(cell.load.id === cell.key.load, path, 'load.id', { got: cell.load.id, want: cell.key.load });
  if (launch === null) return;
  compareStored(path, { control: cell.control }, { control: launch.control }, found);
  // launch.json is written ahead of the loads: where the run was killed, its end is older than its cells.
  const ahead = manifest.status === 'running' && launch.status === 'interrupted';
  const inside =
    cell.anchors.start.atNs >= launch.anchors.start.atNs && (ahead || cell.anchors.end.atNs <= launch.anchors.end.atNs);
  found.require(inside, path, `the cell lies outside its launch (${CELL_FILES.cell} against ${launchFile(cell.key)})`);
}
