// What does sampling a board 50 times per second cost? Through the FFI binding and a stand-in for NVML.

import { startTestGpu } from '../test/support/gpu-process.ts';
import { buildNvmlStub } from '../test/support/nvml-stub/build.ts';
import { askChild } from './child.ts';
import type { SamplerQuestion } from './sampler-client.ts';

export interface SamplerShare {
  /** Of one core: the whole process with its sampler thread, the stand-in's socket calls included. */
  readonly cpuPercent: number;
  readonly samplesPerS: number;
}

/** Null where nothing compiles the stand-in. */
export async function measureSampler(
  folder: string,
  seconds: number,
  core: number | undefined,
): Promise<SamplerShare | null> {
  const { path: libraryPath } = buildNvmlStub();
  if (libraryPath === null) return null;
  const gpu = await startTestGpu();
  try {
    process.env['TOKBENCH_SIM_GPU_SOCKET'] = gpu.socketPath;
    const question: SamplerQuestion = { libraryPath, folder, seconds };
    return await askChild<SamplerShare>('sampler-client.ts', question, core);
  } finally {
    delete process.env['TOKBENCH_SIM_GPU_SOCKET'];
    await gpu.stop();
  }
}
