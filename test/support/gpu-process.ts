// Starts a simulated GPU for a test, gives its socket, and ends it afterwards.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectSim } from '../../src/gpu/simulated/client.ts';

export interface TestGpu {
  readonly socketPath: string;
  readonly child: ChildProcess;
  send(verb: string, fields?: Record<string, string | number | bigint>): Promise<Readonly<Record<string, string>>>;
  running(): boolean;
  stop(): Promise<void>;
}

const SERVER = join(import.meta.dirname, 'gpu-main.ts');

/**
 * Resolves when the server answers on its socket.
 * @param board number that gives it a UUID and a PCI address of its own
 */
export async function startTestGpu(board = 0): Promise<TestGpu> {
  const folder = mkdtempSync(join(tmpdir(), 'tokbench-test-gpu-'));
  const socketPath = join(folder, 'gpu.sock');
  const child = spawn(process.execPath, [SERVER, socketPath, String(board)], { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the test GPU exited with ${code}`)));
    child.stdout!.once('data', () => resolve());
  });
  const running = () => child.exitCode === null && child.signalCode === null;
  return {
    socketPath,
    child,
    running,
    async send(verb, fields = {}) {
      const client = await connectSim(socketPath);
      try {
        return (await client.request(verb, fields)).fields;
      } finally {
        await client.close();
      }
    },
    async stop() {
      if (running()) {
        child.kill('SIGKILL');
        await new Promise((resolve) => child.once('exit', resolve));
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
