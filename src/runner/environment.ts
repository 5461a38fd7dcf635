// Facts about this program, this host and this board for the manifest and the environment bundle.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { ManifestFile } from '../core/index.ts';
import type { GpuDevice } from '../gpu/device.ts';
import { probeHost } from '../telemetry/host.ts';
import type { EnergySource } from './energy-source.ts';
import type { GpuSession } from './gpu-session.ts';

const root = new URL('../../', import.meta.url);

/** Name, version and commit of this program; the commit is null outside a checkout. */
export async function toolFacts(): Promise<ManifestFile['tool']> {
  const { name, version } = JSON.parse(await readFile(new URL('package.json', root), 'utf8')) as {
    name: string;
    version: string;
  };
  return { name, version, commit: await commit(), node: process.version };
}

async function commit(): Promise<string | null> {
  try {
    const { stdout } = await promisify(execFile)(
      'git',
      ['-C', root.pathname, 'describe', '--always', '--dirty', '--abbrev=40'],
      { timeout: 5_000 },
    );
    return stdout.trim();
  } catch {
    return null;
  }
}

export async function hostFacts(): Promise<Readonly<Record<string, unknown>>> {
  return { ...(await probeHost()) };
}

/** Identity and limits of every board in the order of their numbers; UUIDs only as hashes. */
export function gpuFacts(session: GpuSession | null, energy: EnergySource | null): Readonly<Record<string, unknown>> {
  if (!energy) return { kind: 'none' };
  const { maxPowerW, defaultLimitW, samplePeriodMs, counter } = energy;
  if (!session) {
    const { boards } = counter;
    return { kind: energy.kind, boards, remote: energy.remote, defaultLimitW, maxPowerW, samplePeriodMs };
  }
  const facts = session.boards.map(({ device }) => boardFacts(device));
  const [first] = facts;
  return { ...first, boards: facts.length, ...(facts.length > 1 ? { each: facts } : {}), maxPowerW, samplePeriodMs };
}

function boardFacts({ identity: { uuid, ...rest }, limits }: GpuDevice): Readonly<Record<string, unknown>> {
  return { ...rest, uuidSha256: createHash('sha256').update(uuid).digest('hex').slice(0, 16), ...limits };
}

export async function environmentBundle(
  session: GpuSession | null,
  energy: EnergySource | null,
): Promise<Record<string, unknown>> {
  return { tool: await toolFacts(), host: await hostFacts(), gpu: gpuFacts(session, energy), env: process.env };
}
