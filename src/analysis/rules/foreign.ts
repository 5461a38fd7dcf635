// Which compute processes on the board were not the server's (METHOD 7, V22).

import type { BoardProcess, Ns, ProcessStretch } from '../../core/index.ts';

/** Memory of a process that cannot be told by its id may differ by this much from what was noted after load. */
const MEMORY_TOLERANCE_BYTES = 256 * 2 ** 20;

type Seen = ProcessStretch['processes'][number];

interface Stranger {
  readonly pid: number;
  readonly fromNs: Ns;
  readonly toNs: Ns;
  readonly memoryBytes: number | null;
  readonly why: 'before_server' | 'not_of_this_run' | 'not_as_after_load';
}

export interface ForeignProcesses {
  readonly strangers: readonly Stranger[];
  /** `pids_hidden`: ids name no process here; `server_unattributed`: the server was running already. */
  readonly flags: readonly string[];
  /** Processes taken for the server's. */
  readonly own: number;
}

/**
 * A process is a stranger when it was there before the server was started, when it lives here and is not of this run, or
 * when it cannot be told and the ones of its kind are not those, by count and memory, that were noted after load. What
 * was noted then is the server's, unless the server's own processes could be told and it was not among them.
 */
export function foreignProcesses(
  stretches: readonly ProcessStretch[],
  afterLoad: readonly BoardProcess[],
): ForeignProcesses {
  const serverIsSeen = afterLoad.some(({ owner }) => owner === 'server');
  const noted = serverIsSeen ? [] : afterLoad.filter(isUntold);
  const kinds = new Set(afterLoad.filter(isUntold).map(({ owner }) => owner));
  return {
    strangers: stretches.flatMap((stretch, index) => [
      ...(stretch.stage === 'before' && stretches[index + 1]?.stage !== 'before'
        ? stretch.processes.map((process) => stranger(process, stretch, 'before_server'))
        : []),
      ...(stretch.stage === 'before' ? [] : strangersIn(stretch, noted)),
    ]),
    flags: [
      ...(kinds.has('hidden') ? ['pids_hidden'] : []),
      ...(kinds.has('unattributed') ? ['server_unattributed'] : []),
    ],
    own: serverIsSeen ? afterLoad.filter(({ owner }) => owner === 'server').length : noted.length,
  };
}

const isUntold = ({ owner }: Pick<Seen, 'owner'>): boolean => owner === 'hidden' || owner === 'unattributed';

function strangersIn(stretch: ProcessStretch, noted: readonly BoardProcess[]): Stranger[] {
  const known = stretch.processes.filter(({ owner }) => owner === 'other');
  const untold = stretch.stage === 'loaded' ? stretch.processes.filter(isUntold) : [];
  return [
    ...known.map((process) => stranger(process, stretch, 'not_of_this_run')),
    ...unmatched(untold, noted).map((process) => stranger(process, stretch, 'not_as_after_load')),
  ];
}

/** The processes for which nothing like them was noted; each noted one stands for one process. */
function unmatched(processes: readonly Seen[], noted: readonly BoardProcess[]): Seen[] {
  const left = [...noted];
  return processes.filter((process) => {
    const own = left.findIndex(({ pid }) => pid === process.pid);
    const like = left.findIndex((candidate) => isLike(process, candidate.memoryBytes));
    const at = own >= 0 && isLike(process, left[own]!.memoryBytes) ? own : like;
    if (at < 0) return true;
    left.splice(at, 1);
    return false;
  });
}

function isLike({ minMemoryBytes, maxMemoryBytes }: Seen, notedBytes: number | null): boolean {
  if (notedBytes === null || minMemoryBytes === null || maxMemoryBytes === null) return true;
  return notedBytes - minMemoryBytes <= MEMORY_TOLERANCE_BYTES && maxMemoryBytes - notedBytes <= MEMORY_TOLERANCE_BYTES;
}

function stranger({ pid, maxMemoryBytes }: Seen, { fromNs, toNs }: ProcessStretch, why: Stranger['why']): Stranger {
  return { pid, fromNs, toNs, memoryBytes: maxMemoryBytes, why };
}
