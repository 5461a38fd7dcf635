// The launches of a capture and what was measured in them outside the loads: order, completeness, idle power.

import { idleGpu, launchFile, MANIFEST } from '../../capture/layout.ts';
import type { RunReader } from '../../capture/reader.ts';
import {
  type CellFile,
  cellId,
  type GpuSampleTable,
  type IdlePower,
  type LaunchFile,
  launchId,
} from '../../core/index.ts';
import { idlePower } from '../idle.ts';
import { compareStored } from './compare.ts';
import type { Findings } from './findings.ts';

/** P_max of METHOD 1.9 over the board's default limit. */
const MAX_POWER_FACTOR = 1.25;

export async function verifyLaunches(
  run: RunReader,
  launches: readonly LaunchFile[],
  cells: readonly CellFile[],
  found: Findings,
): Promise<void> {
  launches.forEach((launch, position) => {
    checkOrder(launch, launches[position - 1], cells, found);
  });
  for (const launch of launches) {
    const part = launch.idleLoaded === null ? null : await run.launchPart(launch.key, 'idle');
    checkIdle(launchFile(launch.key), 'idleLoaded', launch.idleLoaded, part?.gpu ?? null, limitW(launch), run, found);
  }
  const { idleBare } = run.manifest;
  const bare = idleBare === null ? null : await run.bareIdle();
  const defaultW = launches.map(limitW).find((watts) => watts !== null) ?? null;
  checkIdle(bare === null ? MANIFEST : idleGpu('bare'), 'idleBare', idleBare, bare, defaultW, run, found);
  checkCoverage(run, launches, cells, found);
}

/** P_max follows the largest of the boards; null when one of them is not known. */
function limitW({ control: { boards } }: LaunchFile): number | null {
  const known = boards.map(({ defaultLimitW }) => defaultLimitW).filter((watts) => watts !== null);
  return known.length > 0 && known.length === boards.length ? Math.max(...known) : null;
}

function checkOrder(
  launch: LaunchFile,
  before: LaunchFile | undefined,
  cells: readonly CellFile[],
  found: Findings,
): void {
  const file = launchFile(launch.key);
  if (before !== undefined) {
    found.require(launch.order > before.order, file, 'order: two launches have the same position');
    const after = launch.anchors.start.atNs >= before.anchors.end.atNs;
    found.require(after, file, `it began before launch ${launchId(before.key)} had ended`);
  }
  const played = cells.filter((cell) => launchId(cell.key) === launchId(launch.key)).map((cell) => cell.key.load);
  const planned = launch.loadOrder.filter((load) => played.includes(load));
  found.require(played.join() === planned.join(), file, 'the loads were not played in their planned order', {
    got: played,
    want: planned,
  });
}

/** A stored idle power, derived again from the samples of its own stretch. */
function checkIdle(
  file: string,
  name: string,
  stored: IdlePower | null,
  samples: GpuSampleTable | null,
  defaultLimitW: number | null,
  { manifest }: Pick<RunReader, 'manifest'>,
  found: Findings,
): void {
  if (stored === null) return;
  if (samples === null || defaultLimitW === null) {
    if (samples === null) found.add({ file, what: `${name}: its samples are missing` });
    else found.notes.push(`${file}: ${name} cannot be derived again, no launch says what the board's default limit is`);
    return;
  }
  const recomputed = idlePower(samples, stored.interval, MAX_POWER_FACTOR * defaultLimitW, manifest.counter);
  compareStored(file, { [name]: stored }, { [name]: recomputed }, found);
}

/** Every planned cell is there, or something says why not; nothing is there that was not planned. */
function checkCoverage(
  run: RunReader,
  launches: readonly LaunchFile[],
  cells: readonly CellFile[],
  found: Findings,
): void {
  const { manifest } = run;
  const planned = new Set(manifest.plannedCells);
  const present = new Set(cells.map((cell) => cellId(cell.key)));
  for (const id of present) {
    const first = id.replace(/__a\d+$/, '__a1');
    found.require(planned.has(first), `cells/${id}`, 'this cell was never planned');
  }
  const stopped = manifest.status === 'running' || manifest.status === 'interrupted';
  for (const id of planned) {
    if (present.has(id) || stopped) continue;
    const launch = launches.find(({ key }) => belongsTo(id, key.arm, key.repeat));
    const explained = (launch !== undefined && launch.status !== 'complete') || manifest.failures.length > 0;
    found.require(
      explained && manifest.status !== 'complete',
      MANIFEST,
      `planned cell ${id} is missing and nothing says why`,
    );
  }
}

function belongsTo(id: string, arm: string, repeat: number): boolean {
  return id.startsWith(`${arm}__`) && id.includes(`__r${repeat}__`);
}
