// How many output tokens does each content event carry? METHOD 1.2: token ids first, then the growth of continuous
// usage; what usage counts beyond that is spread evenly over the events without ids.

/** What was seen at each content event, in order. */
export interface EventCounts {
  /** Token ids in the event, 0 for none. */
  readonly ids: readonly number[];
  /** The last `completion_tokens` seen up to the next content event, -1 when none was seen since the event before. */
  readonly usage: readonly number[];
  /** The last `completion_tokens` seen before the first content event, -1 for none. */
  readonly usageBefore: number;
}

export interface Credits {
  readonly tokens: readonly number[];
  /** Some tokens were spread over events by rounding, not observed. */
  readonly interpolated: boolean;
}

/**
 * Tokens per content event for a request credited with `total` tokens. Their sum is `total` unless the stream carries
 * more ids than that, or usage counts more and there is no event without ids to hold them.
 *
 * @param total n_i by usage, else by ids, else by events.
 */
export function creditEvents(seen: EventCounts, total: number): Credits {
  const tokens = seen.ids.slice();
  let interpolated = false;
  const spread = (from: number, to: number, amount: number): number => {
    const open = openEvents(seen, from, to);
    if (open.length === 0 || amount <= 0) return amount;
    interpolated ||= open.length > 1;
    open.forEach((event, j) => {
      tokens[event]! += share(amount, j + 1, open.length);
    });
    return 0;
  };
  let left = total;
  if (isContinuous(seen)) left = spreadSegments(seen, total, spread);
  else left -= sum(seen.ids);
  spread(0, seen.ids.length, left);
  return { tokens, interpolated };
}

type Spread = (from: number, to: number, amount: number) => number;

/** Growth between two sightings of usage belongs to the events between them. Returns what found no event. */
function spreadSegments(seen: EventCounts, total: number, spread: Spread): number {
  let left = Math.max(0, seen.usageBefore);
  let last = left;
  let from = 0;
  seen.usage.forEach((usage, event) => {
    if (usage === -1) return;
    const grown = usage - last - sum(seen.ids.slice(from, event + 1));
    left = spread(from, event + 1, left + grown);
    last = usage;
    from = event + 1;
  });
  return left + total - last;
}

/** More than one sighting, never falling: usage tells where its tokens came. */
function isContinuous(seen: EventCounts): boolean {
  const sightings = [seen.usageBefore, ...seen.usage].filter((usage) => usage !== -1);
  return sightings.length > 1 && sightings.every((usage, i) => i === 0 || usage >= sightings[i - 1]!);
}

function openEvents(seen: EventCounts, from: number, to: number): number[] {
  const open: number[] = [];
  for (let event = from; event < to; event++) if (seen.ids[event] === 0) open.push(event);
  return open;
}

/** round(n j / J) - round(n (j - 1) / J), in integers. */
function share(n: number, j: number, count: number): number {
  const upTo = (k: number) => Math.floor((2 * n * k + count) / (2 * count));
  return upTo(j) - upTo(j - 1);
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
