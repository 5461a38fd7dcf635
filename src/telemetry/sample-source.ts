// What a sampler reads: one board, several boards in turn, or the exporter of another machine. Plain data, so that it
// crosses into the sampler's thread.

import type { GpuSample } from '../core/index.ts';
import type { GpuAddress, GpuDevice, ReadScope } from '../gpu/device.ts';
import { openGpu } from '../gpu/open.ts';

export interface DcgmAddress {
  readonly kind: 'dcgm';
  readonly url: string;
  /** In the order of their numbers; empty takes the only board that the exporter shows. */
  readonly uuids: readonly string[];
}

export type SampleAddress =
  | GpuAddress
  | { readonly kind: 'boards'; readonly addresses: readonly GpuAddress[] }
  | DcgmAddress;

/** One reading after the other, each with a sample per board. */
export interface SampleReader {
  /** Never rejects: what cannot be read is NaN. */
  read(originNs: bigint, scope: ReadScope): Promise<readonly GpuSample[]>;
  /** Failed calls so far by name. */
  errors(): Readonly<Record<string, number>>;
  /** Its calls block their thread, which may then sleep without an event loop. */
  readonly blocks: boolean;
  close(): Promise<void>;
}

/** Rejects as `openGpu` does, or with what the exporter lacks. */
export async function openReader(address: SampleAddress): Promise<SampleReader> {
  if (address.kind === 'dcgm') return (await import('./dcgm.ts')).openDcgm(address);
  return openBoards(address.kind === 'boards' ? address.addresses : [address]);
}

async function openBoards(addresses: readonly GpuAddress[]): Promise<SampleReader> {
  const devices: GpuDevice[] = [];
  const close = async () => {
    for (const device of devices) await device.close();
  };
  try {
    for (const address of addresses) devices.push(await openGpu(address));
  } catch (error) {
    await close();
    throw error;
  }
  const prefix = (board: number) => (devices.length === 1 ? '' : `board ${board}: `);
  return {
    blocks: addresses.every((address) => address.kind === 'nvml'),
    async read(originNs, scope) {
      const samples: GpuSample[] = [];
      for (const [board, device] of devices.entries()) samples.push({ ...(await device.read(originNs, scope)), board });
      return samples;
    },
    errors: () =>
      Object.fromEntries(
        devices.flatMap((device, board) =>
          [...device.readErrors].map(([name, times]) => [`${prefix(board)}${name}`, times]),
        ),
      ),
    close,
  };
}
