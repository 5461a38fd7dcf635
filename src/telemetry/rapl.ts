// Energy counters of CPU packages and memory (RAPL) from the kernel's powercap tree, where this user may read them.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = '/sys/class/powercap';
const ZONE = /^intel-rapl(:\d+)+$/;
const UJ_PER_J = 1e6;
/** Share of the range that flows between two readings at most: a counter that needs minutes for it is read twice a second. */
const MAX_WRAPPED = 0.5;

export interface RaplZone {
  /** `package-0`, `dram`, behind the package's number where a zone lies inside one: `package-0/dram`. */
  readonly name: string;
  /**
   * Joules since the zone was opened; the counter's wrap is taken out. Null when it cannot be read, and from then on when
   * it has gone down by what no wrap explains: what flowed before is lost.
   */
  read(): number | null;
}

/** Every zone whose counter can be read; none on a machine without, or where only root may read them. */
export function raplZones(root = ROOT): RaplZone[] {
  const folders = listOf(root).filter((name) => ZONE.test(name));
  return folders.flatMap((folder) => {
    const firstUj = numberIn(root, folder, 'energy_uj');
    const rangeUj = numberIn(root, folder, 'max_energy_range_uj');
    if (firstUj === null || rangeUj === null) return [];
    return [zone(nameOf(root, folder), () => numberIn(root, folder, 'energy_uj'), firstUj, rangeUj)];
  });
}

function zone(name: string, readUj: () => number | null, firstUj: number, rangeUj: number): RaplZone {
  let lastUj = firstUj;
  let totalUj = 0;
  let isLost = false;
  return {
    name,
    read() {
      const nowUj = readUj();
      if (nowUj === null || isLost) return null;
      const flownUj = nowUj >= lastUj ? nowUj - lastUj : nowUj + rangeUj - lastUj;
      isLost = flownUj < 0 || (nowUj < lastUj && flownUj > MAX_WRAPPED * rangeUj);
      if (isLost) return null;
      totalUj += flownUj;
      lastUj = nowUj;
      return totalUj / UJ_PER_J;
    },
  };
}

function nameOf(root: string, folder: string): string {
  const own = textIn(root, folder, 'name') ?? folder;
  const parent = folder.slice(0, folder.lastIndexOf(':'));
  const above = ZONE.test(parent) ? textIn(root, parent, 'name') : null;
  return above === null ? own : `${above}/${own}`;
}

function listOf(root: string): string[] {
  try {
    return readdirSync(root).sort();
  } catch {
    return [];
  }
}

function textIn(root: string, folder: string, file: string): string | null {
  try {
    return readFileSync(join(root, folder, file), 'utf8').trim();
  } catch {
    return null;
  }
}

function numberIn(root: string, folder: string, file: string): number | null {
  const text = textIn(root, folder, file);
  return text !== null && /^\d+$/.test(text) ? Number(text) : null;
}
