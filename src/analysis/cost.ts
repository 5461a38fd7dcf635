// Dollars per token of goodput, at a price per hour (METHOD 8.1).

import type { CostMetrics } from '../core/index.ts';

const SECONDS_PER_HOUR = 3600;
const TOKENS_PER_MTOK = 1e6;
const JOULES_PER_KWH = 3.6e6;

/** Dollars per million good tokens (null when goodput is 0), and good tokens per dollar. */
export function costOf(pricePerHour: number, goodputTokPerS: number): CostMetrics {
  return {
    pricePerHour,
    dollarsPerMtok: goodputTokPerS > 0 ? (pricePerHour * TOKENS_PER_MTOK) / (SECONDS_PER_HOUR * goodputTokPerS) : null,
    goodTokensPerDollar: (SECONDS_PER_HOUR * goodputTokPerS) / pricePerHour,
  };
}

/** Electricity per million good tokens: shown beside the rent and never added to it. Null when there are none. */
export function electricityPerMtok(energyJ: number, pricePerKwh: number, goodTokens: number): number | null {
  return goodTokens > 0 ? (((energyJ / JOULES_PER_KWH) * pricePerKwh) / goodTokens) * TOKENS_PER_MTOK : null;
}
