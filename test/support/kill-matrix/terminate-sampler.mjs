// Preloaded into a runner: SIGUSR2 ends its sampler's thread, which nothing outside the process could do.

import { syncBuiltinESMExports } from 'node:module';
import threads, { isMainThread } from 'node:worker_threads';

if (isMainThread) {
  const samplers = new Set();
  threads.Worker = class extends threads.Worker {
    constructor(url, options) {
      super(url, options);
      if (String(url).endsWith('/sampler-worker.ts')) samplers.add(this);
    }
  };
  syncBuiltinESMExports();
  process.on('SIGUSR2', () => {
    for (const sampler of samplers) void sampler.terminate();
  });
}
