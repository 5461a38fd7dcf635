// Entry of a load worker's thread: one share of a planned load, or a whole soak.

import { parentPort, workerData } from 'node:worker_threads';
import type { FromWorker, LoadWorkerData, SoakWorkerData, ToWorker } from './messages.ts';
import { LoadShard } from './shard.ts';
import { SoakDriver } from './soak-driver.ts';

const port = parentPort!;
const send = (message: FromWorker): void => port.postMessage(message);
const data = workerData as { planned: LoadWorkerData } | { soak: SoakWorkerData };
const driver = 'planned' in data ? new LoadShard(data.planned, send) : new SoakDriver(data.soak, send);

port.on('message', async (message: ToWorker) => {
  if (message.type === 'start') {
    driver.start(message);
    return;
  }
  await driver.stop();
  port.close();
});
await driver.prepare();
