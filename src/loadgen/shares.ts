// Who plays which arrival: number i of a load, or slot i of a closed loop, belongs to worker i mod n.

/** How many of `count` fall to `worker`. */
export const shareSize = (count: number, worker: number, workers: number): number =>
  Math.max(0, Math.ceil((count - worker) / workers));

/** The number in the whole of what stands at `position` in the share of `worker`. */
export const shareIndex = (position: number, worker: number, workers: number): number => worker + position * workers;

/** The inverse of shareIndex: where in the share of `worker` its number `index` stands. */
export const sharePosition = (index: number, worker: number, workers: number): number => (index - worker) / workers;
