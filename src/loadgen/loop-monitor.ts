// How healthy is this thread's event loop? Delay of a short timer, utilisation, and garbage collection pauses.

import { type EventLoopUtilization, PerformanceObserver, performance } from 'node:perf_hooks';
import { NS_PER_MS, type Ns, type WorkerEvidence } from '../core/index.ts';

/** Every so often a timer asks how late it is. */
const PERIOD_MS = 10;
/** Timers count in whole milliseconds and so are late by up to one, however idle the loop is. */
const TIMER_GRAIN_NS = 1 * NS_PER_MS;

export interface LoopMonitor {
  /** Begins the measured interval. */
  open(): void;
  /** Ends it and returns what was seen in between; null when it was never begun. */
  close(worker: number): WorkerEvidence | null;
}

/**
 * @param waitedNs total time that the pacer spent waiting, to be left out of the utilisation.
 */
export function monitorLoop(now: () => Ns, waitedNs: () => number): LoopMonitor {
  let window: Window | null = null;
  const observer = new PerformanceObserver((list) => {
    if (window === null) return;
    for (const { duration } of list.getEntries()) window.pausesMs.push(duration);
  });
  return {
    open() {
      observer.observe({ entryTypes: ['gc'] });
      const opened: Window = {
        fromNs: now(),
        waitedNs: waitedNs(),
        utilization: performance.eventLoopUtilization(),
        pausesMs: [],
        delaysNs: [],
        timer: setTimeout(() => {}, 0),
      };
      window = opened;
      tick(opened, now);
    },
    close(worker) {
      const closed = window;
      window = null;
      if (closed === null) return null;
      clearTimeout(closed.timer);
      for (const { duration } of observer.takeRecords()) closed.pausesMs.push(duration);
      observer.disconnect();
      return summarize(worker, closed, now() - closed.fromNs, waitedNs() - closed.waitedNs);
    },
  };
}

interface Window {
  readonly fromNs: Ns;
  readonly waitedNs: number;
  readonly utilization: EventLoopUtilization;
  readonly pausesMs: number[];
  readonly delaysNs: number[];
  timer: NodeJS.Timeout;
}

function tick(window: Window, now: () => Ns): void {
  const setNs = now();
  window.timer = setTimeout(() => {
    const late = now() - setNs - PERIOD_MS * NS_PER_MS - TIMER_GRAIN_NS;
    window.delaysNs.push(Math.max(0, late));
    tick(window, now);
  }, PERIOD_MS);
}

function summarize(worker: number, window: Window, spanNs: number, waitedNs: number): WorkerEvidence {
  const delays = window.delaysNs.toSorted((a, b) => a - b);
  const busyShare = performance.eventLoopUtilization(window.utilization).utilization;
  return {
    worker,
    loopDelayP99Ms: (delays[Math.floor((99 * delays.length + 99) / 100) - 1] ?? 0) / NS_PER_MS,
    loopDelayMaxMs: (delays.at(-1) ?? 0) / NS_PER_MS,
    loopUtilization: Math.max(0, busyShare - waitedNs / spanNs),
    gcPauseMaxMs: window.pausesMs.reduce((longest, pause) => Math.max(longest, pause), 0),
    gcPauseTotalMs: window.pausesMs.reduce((total, pause) => total + pause, 0),
  };
}
