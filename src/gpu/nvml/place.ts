// Where this process runs, as far as it decides what NVML lets it do: host, container, sandbox, and with which rights.

import { existsSync, readFileSync, readlinkSync } from 'node:fs';

export interface Place {
  /** `gvisor` is a sandbox with a kernel of its own that passes only part of the driver's calls on; `wsl` a virtual machine of Windows. */
  readonly kind: 'host' | 'container' | 'gvisor' | 'wsl';
  readonly isRoot: boolean;
  /** Null where the process's capabilities cannot be read. */
  readonly hasSysAdmin: boolean | null;
  /** The driver names processes by the host's ids: they mean ours only in the host's pid namespace. Null: not known. */
  readonly ownPidsAreTheHosts: boolean | null;
  /** NVIDIA_DRIVER_CAPABILITIES of a container runtime; null where it is not set. */
  readonly driverCapabilities: string | null;
}

/** What the decision is made from; a text is null where it cannot be read. */
export interface PlaceTraces {
  readonly containerMarker: boolean;
  readonly cgroup: string | null;
  readonly kernelVersion: string | null;
  readonly status: string | null;
  readonly pidNamespace: string | null;
  readonly uid: number | null;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const CONTAINER_CGROUP = /docker|kubepods|containerd|libpod|lxc|garden/;
/** The line that gVisor's kernel gives in /proc/version. */
const GVISOR_VERSION = /gvisor|Linux version 4\.4\.0 .*Sun Jan 10 15:06:54 PST 2016/i;
const CAP_SYS_ADMIN = 21n;
/** PROC_PID_INIT_INO of the kernel: the inode of the first pid namespace on every machine. */
const HOST_PID_NAMESPACE = 'pid:[4026531836]';

export function placeOf(traces: PlaceTraces): Place {
  const { status, uid, pidNamespace, env } = traces;
  const capabilities = /^CapEff:\s*([0-9a-f]+)/im.exec(status ?? '')?.[1];
  return {
    kind: kindOf(traces),
    isRoot: uid === 0,
    hasSysAdmin: capabilities === undefined ? null : ((BigInt(`0x${capabilities}`) >> CAP_SYS_ADMIN) & 1n) === 1n,
    ownPidsAreTheHosts: pidNamespace === null ? null : pidNamespace === HOST_PID_NAMESPACE,
    driverCapabilities: env['NVIDIA_DRIVER_CAPABILITIES'] ?? null,
  };
}

function kindOf({ kernelVersion, containerMarker, cgroup, env }: PlaceTraces): Place['kind'] {
  if (kernelVersion !== null && GVISOR_VERSION.test(kernelVersion)) return 'gvisor';
  if (kernelVersion !== null && /microsoft/i.test(kernelVersion)) return 'wsl';
  const kubernetes = env['KUBERNETES_SERVICE_HOST'] !== undefined;
  return containerMarker || kubernetes || CONTAINER_CGROUP.test(cgroup ?? '') ? 'container' : 'host';
}

function attempt(read: () => string): string | null {
  try {
    return read();
  } catch {
    return null;
  }
}

let here: Place | null = null;

/** Where this process runs; looked at once. */
export function placeHere(): Place {
  here ??= placeOf({
    containerMarker: existsSync('/.dockerenv') || existsSync('/run/.containerenv'),
    cgroup: attempt(() => readFileSync('/proc/1/cgroup', 'latin1')),
    kernelVersion: attempt(() => readFileSync('/proc/version', 'latin1')),
    status: attempt(() => readFileSync('/proc/self/status', 'latin1')),
    pidNamespace: attempt(() => readlinkSync('/proc/self/ns/pid')),
    uid: process.geteuid?.() ?? null,
    env: process.env,
  });
  return here;
}
