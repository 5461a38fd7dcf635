// Entry of the pacer's thread: sleeps until shortly before each arrival and then wakes the worker that will send it.
// A thread that does nothing else can sleep to some tens of microseconds; a timer of a busy loop is late by up to a millisecond.

import { parentPort, workerData } from 'node:worker_threads';
import type { PacerThreadData } from './messages.ts';

const NS_PER_MS = 1_000_000;
/** Wakes the worker so long before its arrival is due: sleeping too long and the way from thread to thread take about 120 us. */
const LEAD_NS = 150_000;

const { scheduledNs, originNs, wakeUps } = workerData as PacerThreadData;
const now = (): number => Number(process.hrtime.bigint() - originNs);

/** Nobody notifies it: a wait on it is a sleep that `terminate` can end. */
const never = new Int32Array(new SharedArrayBuffer(4));

function pace(startNs: number): void {
  for (let index = 0; index < scheduledNs.length; index++) {
    const wakeNs = startNs + scheduledNs[index]! - LEAD_NS;
    for (let restNs = wakeNs - now(); restNs > 0; restNs = wakeNs - now()) {
      Atomics.wait(never, 0, 0, restNs / NS_PER_MS);
    }
    const worker = index % wakeUps.length;
    Atomics.add(wakeUps, worker, 1);
    Atomics.notify(wakeUps, worker);
  }
}

parentPort!.once('message', ({ startNs }: { readonly startNs: number }) => {
  pace(startNs);
  parentPort!.close();
});
