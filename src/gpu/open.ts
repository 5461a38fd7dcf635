// Opens a device from its address, in any thread or process.

import type { GpuAddress, GpuDevice } from './device.ts';

/** Opens the device. Rejects with EnvironmentError (no library, no board, no socket), RefusedError (MIG, vGPU) or GpuError. */
export async function openGpu(address: GpuAddress): Promise<GpuDevice> {
  if (address.kind === 'simulated') {
    const { openSimulatedGpu } = await import('./simulated/device.ts');
    return openSimulatedGpu(address.socketPath);
  }
  const { openNvmlGpu } = await import('./nvml/device.ts');
  return openNvmlGpu(address.uuid, address.libraryPath);
}
