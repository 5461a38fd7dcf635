// A stand-in for the runner: takes a lock and a cap, starts an "engine" of two processes, says so, and waits to be killed.
//
// argv: JSON of { runId, journalDir, addresses }. Prints one JSON line { pgid, child } when everything is in force.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { GpuAddress } from '../../../src/gpu/device.ts';
import { startGuard } from '../../../src/gpu/guard/guard.ts';
import { processFacts } from '../../../src/gpu/guard/proc.ts';

interface Task {
  readonly runId: string;
  readonly journalDir: string;
  readonly addresses: readonly GpuAddress[];
}

const task = JSON.parse(process.argv[2]!) as Task;
const watchdog = [process.execPath, join(import.meta.dirname, 'watchdog-main.ts')];
const guard = await startGuard({ ...task, spawnCommand: watchdog });

// The leader ignores SIGTERM; its child shares the group but not the tag, as a process that changed its title does.
const LEADER = `
  process.on('SIGTERM', () => {});
  const env = { ...process.env };
  delete env.TOKBENCH_RUN;
  const child = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { env });
  console.log(child.pid);
  setInterval(() => {}, 1000);
`;

await guard.noteEngineIntent();
const env = { ...process.env, TOKBENCH_RUN: task.runId };
const engine = spawn(process.execPath, ['-e', LEADER], { detached: true, env, stdio: ['ignore', 'pipe', 'ignore'] });
await guard.noteEngine({ pgid: engine.pid!, startTime: processFacts(engine.pid!)?.startTime ?? null });
const [child] = await new Promise<string[]>((resolve) => {
  createInterface({ input: engine.stdout! }).once('line', (line) => resolve([line]));
});
if (task.addresses.length > 0) {
  await guard.lock(1400);
  await guard.cap(250);
}
process.stdout.write(`${JSON.stringify({ pgid: engine.pid, child: Number(child) })}\n`);
void guard.lost.then((reason) => process.stdout.write(`${JSON.stringify({ lost: reason })}\n`));
setInterval(() => {}, 1000);
