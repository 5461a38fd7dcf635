// What this machine is, for the environment bundle: no names, no addresses, nothing that is secret.

import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism, cpus, freemem, release, totalmem, type } from 'node:os';

export interface HostFacts {
  readonly os: string;
  readonly kernel: string;
  readonly arch: string;
  readonly cpuModel: string | null;
  readonly logicalCores: number;
  /** Cores that this process may use: affinity and, where the system counts it, the container's quota. */
  readonly allottedCores: number;
  readonly memoryBytes: number;
  readonly freeMemoryBytes: number;
  /** `docker`, `podman`, `kubernetes`, another cgroup's name, or null when nothing hints at a container. */
  readonly container: string | null;
  /** Soft and hard limit of open files; null where /proc is missing or unlimited. */
  readonly openFilesSoft: number | null;
  readonly openFilesHard: number | null;
  /** Facts that this operating system does not tell, with the reason. */
  readonly missing: Readonly<Record<string, string>>;
}

/** Where the facts are read; tests pass another folder. */
export interface HostSources {
  readonly platform: NodeJS.Platform;
  /** Prefix before `/proc`, `/.dockerenv` and the like. */
  readonly root: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const HERE: HostSources = { platform: process.platform, root: '', env: process.env };

/** Probes the machine; never throws, what cannot be read is null and named in `missing`. */
export async function probeHost(sources: HostSources = HERE): Promise<HostFacts> {
  const linux = sources.platform === 'linux';
  const files = linux ? openFileLimits(sources.root) : null;
  return {
    os: type(),
    kernel: release(),
    arch: process.arch,
    cpuModel: cpus()[0]?.model.trim() || null,
    logicalCores: cpus().length,
    allottedCores: availableParallelism(),
    memoryBytes: totalmem(),
    freeMemoryBytes: freemem(),
    container: linux ? containerHint(sources) : null,
    openFilesSoft: files?.soft ?? null,
    openFilesHard: files?.hard ?? null,
    missing: linux
      ? {}
      : {
          container: `read on Linux only, not on ${sources.platform}`,
          openFiles: `read on Linux only, not on ${sources.platform}`,
        },
  };
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function openFileLimits(root: string): { soft: number | null; hard: number | null } {
  const text = readText(`${root}/proc/self/limits`) ?? '';
  const [, soft, hard] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(text) ?? [];
  return { soft: countOf(soft), hard: countOf(hard) };
}

const countOf = (text: string | undefined): number | null => (text && /^\d+$/.test(text) ? Number(text) : null);

function containerHint({ root, env }: HostSources): string | null {
  if (env['KUBERNETES_SERVICE_HOST']) return 'kubernetes';
  if (existsSync(`${root}/.dockerenv`)) return 'docker';
  if (existsSync(`${root}/run/.containerenv`)) return 'podman';
  const cgroup = readText(`${root}/proc/1/cgroup`) ?? '';
  return /(docker|kubepods|containerd|lxc|libpod)/.exec(cgroup)?.[1] ?? null;
}
