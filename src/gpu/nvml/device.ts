import type { GpuDevice } from '../device.ts';
export function openNvmlGpu(_uuid: string | null, _libraryPath: string | null): Promise<GpuDevice> {
  throw new Error('later');
}
