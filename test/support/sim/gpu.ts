// Runs the simulated GPU in a process of its own: gpu.ts SOCKET
import { runSimulatedGpu } from '../../../src/sim/gpu-process.ts';

await runSimulatedGpu({ socketPath: process.argv[2]! });
