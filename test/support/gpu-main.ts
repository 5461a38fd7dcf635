// The simulated GPU as a program of its own, for tests. argv: socket path.

import { runSimulatedGpu } from '../../src/sim/gpu-process.ts';

await runSimulatedGpu({ socketPath: process.argv[2]! });
