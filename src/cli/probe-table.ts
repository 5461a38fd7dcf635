// The report of a probe as a table for a person.

import type { Place } from '../gpu/nvml/place.ts';
import { type BoardProbe, PROBE_GROUPS, type ProbeAnswer, type ProbeReport } from '../gpu/probe.ts';

export function probeLines(report: ProbeReport): string[] {
  const { place, library, driver, nvml, cuda, missingFunctions, boards } = report;
  return [
    `place      ${placeText(place)}`,
    `library    ${library ?? 'none: a simulated GPU'}`,
    `driver     ${driver ?? 'unknown'}${nvml === null ? '' : `, NVML ${nvml}`}${cuda === null ? '' : `, CUDA up to ${cuda}`}`,
    ...(missingFunctions.length === 0 ? [] : [`lacks      ${missingFunctions.join(', ')}`]),
    ...boards.flatMap(boardLines),
  ];
}

function placeText({ kind, isRoot, hasSysAdmin, ownPidsAreTheHosts }: Place): string {
  const name = { host: 'this machine itself', container: 'a container', gvisor: 'a gVisor sandbox', wsl: 'WSL' }[kind];
  const rights = hasSysAdmin === null ? 'capabilities unknown' : `${hasSysAdmin ? 'with' : 'without'} CAP_SYS_ADMIN`;
  const pids = ownPidsAreTheHosts === false ? '; process ids of the driver are not those seen here' : '';
  return `${name}, ${isRoot ? 'as root' : 'not as root'}, ${rights}${pids}`;
}

function boardLines({ name, uuid, synthetic, answers, verdicts }: BoardProbe): string[] {
  const title = `${name} ${uuid}${synthetic ? ' (SYNTHETIC: no real board)' : ''}`;
  const groups = PROBE_GROUPS.flatMap((group) => {
    const own = answers.filter((each) => each.group === group);
    return own.length === 0 ? [] : [`  ${group}`, ...own.map((each) => `    ${answerText(each)}`)];
  });
  const follows = verdicts.map(({ name: what, possible, why }) => `    ${what.padEnd(38)} ${possible}: ${why}`);
  return ['', title, ...groups, '  so', ...follows];
}

function answerText({ name, code, value, unit }: ProbeAnswer): string {
  return `${name.padEnd(38)} ${code === 'SUCCESS' ? valueText(value, unit) : code}`;
}

function valueText(value: ProbeAnswer['value'], unit: string | null): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number' && unit === 'mW') return `${value / 1000} W`;
  if (typeof value === 'number' && unit === 'mJ') return `${value / 1000} J`;
  if (typeof value === 'number' && unit === 'B') return `${Number((value / 2 ** 30).toFixed(2))} GiB`;
  return unit === null ? String(value) : `${value} ${unit}`;
}
