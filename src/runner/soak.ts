// The soak: `full` closed loop until two successive power means agree (METHOD 1.11).

/** Steady when two successive means differ by at most max(3 W, 1 %). */
export function powerIsSteady(previousW: number, lastW: number): boolean {
  return Math.abs(lastW - previousW) <= Math.max(3, 0.01 * previousW);
}

export interface SoakDecision {
  readonly done: boolean;
  readonly endedBy: 'steady' | 'limit' | 'no_power' | null;
}

/**
 * Whether the soak may end now.
 * @param elapsedS seconds since the soak's first arrival
 * @param meansW means of the successive comparison windows so far, W; null for one that could not be read, or when there is no power at all
 */
export function soakDecision(
  limits: { readonly minS: number; readonly maxS: number },
  elapsedS: number,
  meansW: readonly (number | null)[] | null,
): SoakDecision {
  if (elapsedS < limits.minS) return { done: false, endedBy: null };
  if (meansW === null) return { done: true, endedBy: 'no_power' };
  const [previous, last] = meansW.slice(-2);
  if (previous != null && last != null && powerIsSteady(previous, last)) {
    return { done: true, endedBy: 'steady' };
  }
  return elapsedS >= limits.maxS ? { done: true, endedBy: 'limit' } : { done: false, endedBy: null };
}
