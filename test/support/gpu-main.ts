// The simulated GPU as a program of its own, for tests. argv: socket path, number of the board.

import { runSimulatedGpu } from '../../src/sim/gpu-process.ts';

await runSimulatedGpu({ socketPath: process.argv[2]!, board: Number(process.argv[3] ?? 0) });
