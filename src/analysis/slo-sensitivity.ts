// Feasibility of stored probes at other SLOs, and the bracket of capacity that each implies (METHOD 8.4).

import type { Slo } from '../core/index.ts';

export interface StoredProbe {
  readonly rate: number;
  readonly p99TtftMs: number;
  readonly p99TpotMs: number;
  /** The SLO at which it was stopped early: it has no p99 of a full window. */
  readonly curtailedAt?: Slo;
}

export interface SensitivityRow {
  readonly slo: Slo;
  /** Per probe in ascending order of rate; null: unknown. */
  readonly feasible: readonly (boolean | null)[];
  /** Largest feasible rate, and the smallest infeasible one above it; null where open. */
  readonly bracket: readonly [number | null, number | null];
  /** False when an infeasible probe lies below a feasible one. */
  readonly monotone: boolean;
}

/** One row per SLO, from the stored p99s alone: marginal, inclusive, +Infinity never feasible. */
export function sloSensitivity(stored: readonly StoredProbe[], slos: readonly Slo[]): SensitivityRow[] {
  const probes = stored.toSorted((a, b) => a.rate - b.rate);
  return slos.map((slo) => {
    const feasible = probes.map((probe) => feasibleAt(probe, slo));
    const rates = (verdict: boolean) => probes.filter((_, k) => feasible[k] === verdict).map((probe) => probe.rate);
    const [good, bad] = [rates(true), rates(false)];
    const lower = good.length === 0 ? null : Math.max(...good);
    const above = bad.filter((rate) => lower === null || rate > lower);
    return {
      slo,
      feasible,
      bracket: [lower, above.length === 0 ? null : Math.min(...above)],
      monotone: lower === null || bad.every((rate) => rate >= lower),
    };
  });
}

function feasibleAt(probe: StoredProbe, slo: Slo): boolean | null {
  const { curtailedAt } = probe;
  if (curtailedAt === undefined) return probe.p99TtftMs <= slo.ttftMs && probe.p99TpotMs <= slo.tpotMs;
  return slo.ttftMs <= curtailedAt.ttftMs && slo.tpotMs <= curtailedAt.tpotMs ? false : null;
}
