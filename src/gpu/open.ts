// Opens a device from its address, in any thread or process.

import type { GpuAddress, GpuDevice } from './device.ts';

/** Opens every board, or none: when one cannot be opened, the others are closed again. Rejects as `openGpu` does. */
export async function openGpus(addresses: readonly GpuAddress[]): Promise<GpuDevice[]> {
  const devices: GpuDevice[] = [];
  try {
    for (const address of addresses) devices.push(await openGpu(address));
    return devices;
  } catch (error) {
    for (const device of devices) await device.close();
    throw error;
  }
}

/** Opens the device. Rejects with EnvironmentError (no library, no board, no socket), RefusedError (MIG, vGPU) or GpuError. */
export async function openGpu(address: GpuAddress): Promise<GpuDevice> {
  if (address.kind === 'simulated') {
    const { openSimulatedGpu } = await import('./simulated/device.ts');
    return openSimulatedGpu(address.socketPath);
  }
  const { openNvmlGpu } = await import('./nvml/device.ts');
  return openNvmlGpu(address.uuid, address.libraryPath);
}
