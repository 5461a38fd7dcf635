// Entry of a load worker's thread: one shard of an open load, or a whole closed one.

import { parentPort, workerData } from 'node:worker_threads';
import { ClosedDriver } from './closed-driver.ts';
import type { ClosedWorkerData, FromWorker, OpenWorkerData, ToWorker } from './messages.ts';
import { LoadShard } from './shard.ts';

const port = parentPort!;
const send = (message: FromWorker): void => port.postMessage(message);
const data = workerData as { open: OpenWorkerData } | { closed: ClosedWorkerData };
const driver = 'open' in data ? new LoadShard(data.open, send) : new ClosedDriver(data.closed, send);

port.on('message', async (message: ToWorker) => {
  if (message.type === 'start') {
    driver.start(message);
    return;
  }
  await driver.stop();
  port.close();
});
await driver.prepare();
