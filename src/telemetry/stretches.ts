// Polls of the processes on a board, kept as stretches in which they stayed the same.

import type { BoardProcess, LaunchStage, Ns, ProcessStretch } from '../core/index.ts';

type Kept = ProcessStretch['processes'][number];

/** The stretches after one more poll. */
export function withPoll(
  stretches: readonly ProcessStretch[],
  poll: { readonly stage: LaunchStage; readonly atNs: Ns; readonly processes: readonly BoardProcess[] },
): ProcessStretch[] {
  const processes = poll.processes.toSorted((a, b) => a.pid - b.pid);
  const last = stretches.at(-1);
  if (last === undefined || last.stage !== poll.stage || !sameProcesses(last.processes, processes)) {
    const { stage, atNs } = poll;
    return [...stretches, { stage, fromNs: atNs, toNs: atNs, polls: 1, processes: processes.map(kept) }];
  }
  const longer: ProcessStretch = {
    ...last,
    toNs: poll.atNs,
    polls: last.polls + 1,
    processes: last.processes.map((process, index) => widened(process, processes[index]!.memoryBytes)),
  };
  return [...stretches.slice(0, -1), longer];
}

const sameProcesses = (kept: readonly Kept[], seen: readonly BoardProcess[]): boolean =>
  kept.length === seen.length &&
  kept.every(({ pid, owner }, index) => seen[index]!.pid === pid && seen[index]!.owner === owner);

const kept = ({ pid, owner, memoryBytes }: BoardProcess): Kept => ({
  pid,
  owner,
  minMemoryBytes: memoryBytes,
  maxMemoryBytes: memoryBytes,
});

function widened(process: Kept, memoryBytes: number | null): Kept {
  if (memoryBytes === null) return process;
  const { minMemoryBytes, maxMemoryBytes } = process;
  return {
    ...process,
    minMemoryBytes: Math.min(minMemoryBytes ?? memoryBytes, memoryBytes),
    maxMemoryBytes: Math.max(maxMemoryBytes ?? memoryBytes, memoryBytes),
  };
}
