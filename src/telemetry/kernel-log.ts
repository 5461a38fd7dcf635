// Xid faults of one board from the kernel log, for boards whose driver gives no events of its own.

import { closeSync, constants, openSync, readSync } from 'node:fs';
import type { GpuFault, GpuFaultEvents } from '../gpu/device.ts';

const KERNEL_LOG = '/dev/kmsg';
/** The kernel gives one record a read, never a longer one. */
const RECORD_BYTES = 8192;
const XID = /NVRM: Xid \(PCI:([0-9a-f]+):([0-9a-f]+):([0-9a-f]+)[^)]*\): (\d+)/i;

/** The fault of one line of the log; null when it is of another board, or no Xid. */
export function xidOfLine(line: string, pciBusId: string): GpuFault | null {
  const [, domain, bus, device, number] = XID.exec(line) ?? [];
  const own = /^([0-9a-f]+):([0-9a-f]+):([0-9a-f]+)/i.exec(pciBusId);
  if (number === undefined || own === null) return null;
  const same = [domain, bus, device].every(
    (part, index) => Number.parseInt(part!, 16) === Number.parseInt(own[index + 1]!, 16),
  );
  return same ? { kind: 'xid', number: Number(number) } : null;
}

/** What the log says from now on; null where it cannot be read (it often needs root). */
export function openKernelLog(pciBusId: string): GpuFaultEvents | null {
  if (pciBusId === '') return null;
  let log: number;
  try {
    log = openSync(KERNEL_LOG, constants.O_RDONLY | constants.O_NONBLOCK);
    newLines(log);
  } catch {
    return null;
  }
  return {
    drain: async () => newLines(log).flatMap((line) => xidOfLine(line, pciBusId) ?? []),
    close: async () => closeSync(log),
  };
}

function newLines(log: number): string[] {
  const record = Buffer.alloc(RECORD_BYTES);
  const lines: string[] = [];
  for (;;) {
    try {
      lines.push(record.toString('utf8', 0, readSync(log, record)));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EAGAIN') return lines;
      // Records that were overwritten before they were read: the next read goes on with the oldest that is left.
      if (code !== 'EPIPE') throw error;
    }
  }
}
