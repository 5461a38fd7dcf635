// A server in a process of its own that misbehaves to a plan and keeps a log of what it did to whom. It speaks to its
// parent: the plan in, the port out; `log` in, the log out.

import { uniform } from '../../src/sim/random.ts';
import { ACTIONS, type Action, indexOf, rawServer, type SeenRequest } from '../bug-reports/support/servers.ts';
import { DONE, STREAM_HEAD, textEvent, usageEvent } from '../support/replay.ts';

export type ServerPlan =
  /** Answers `serviceMs` after a request was read, but nothing between two instants (CLOCK_MONOTONIC, ns as text). */
  | { readonly kind: 'stall'; readonly serviceMs: number }
  /** `events` tokens, one every `gapMs`, from the moment that as many requests as `together` have been read. */
  | { readonly kind: 'streams'; readonly together: number; readonly events: number; readonly gapMs: number }
  /** Each action with this chance, chosen by the request's index; all others are served. */
  | { readonly kind: 'chaos'; readonly seed: number; readonly chance: number; readonly actions: readonly Action[] };

export type ToServer =
  | { readonly type: 'plan'; readonly plan: ServerPlan }
  | { readonly type: 'stall'; readonly fromNs: string; readonly toNs: string }
  | { readonly type: 'log' };

export interface LogEntry {
  readonly index: number;
  readonly action: Action;
  /** When the answer was let go, CLOCK_MONOTONIC ns as text. */
  readonly releasedNs: string;
}

export type FromServer =
  | { readonly type: 'port'; readonly port: number }
  /** All requests of a group of streams have been read; the first event leaves one gap later. */
  | { readonly type: 'streaming' }
  | { readonly type: 'log'; readonly log: LogEntry[] };

const log: LogEntry[] = [];
let stall = { fromNs: 0n, toNs: 0n };

function act(action: Action, request: SeenRequest): void {
  log.push({ index: indexOf(request.id), action, releasedNs: String(process.hrtime.bigint()) });
  ACTIONS[action](request);
}

/** What is due while the server stands still is done when it moves again. */
function serveSlowly(request: SeenRequest, dueNs: bigint): void {
  const nowNs = process.hrtime.bigint();
  const until = dueNs >= stall.fromNs && dueNs < stall.toNs ? stall.toNs : dueNs;
  if (nowNs >= until) act('ok', request);
  else setTimeout(() => serveSlowly(request, until), Math.ceil(Number(until - nowNs) / 1e6));
}

/** The same for one index whatever the order of arrival. */
function choose({ seed, chance, actions }: Extract<ServerPlan, { kind: 'chaos' }>, index: number): Action {
  const at = Math.floor(uniform(seed * 100_003 + index)() / chance);
  return actions[at] ?? 'ok';
}

const waiting: SeenRequest[] = [];

/** Streams start together, so that no request is still being sent while they run. */
function streamTogether({ together, events, gapMs }: Extract<ServerPlan, { kind: 'streams' }>, request: SeenRequest) {
  waiting.push(request);
  if (waiting.length < together) return;
  const streams = waiting.splice(0);
  let sent = 0;
  process.send?.({ type: 'streaming' } satisfies FromServer);
  for (const { socket } of streams) socket.write(STREAM_HEAD);
  const beat = setInterval(() => {
    sent += 1;
    const last = sent === events;
    const text = textEvent(' x', [sent], last ? 'length' : null) + (last ? usageEvent(events) + DONE : '');
    for (const { socket } of streams) {
      if (last) socket.end(text);
      else socket.write(text);
    }
    if (last) clearInterval(beat);
  }, gapMs);
}

async function open(plan: ServerPlan): Promise<void> {
  const server = await rawServer((request) => {
    if (plan.kind === 'chaos') act(choose(plan, indexOf(request.id)), request);
    else if (plan.kind === 'streams') streamTogether(plan, request);
    else serveSlowly(request, request.readNs + BigInt(plan.serviceMs * 1e6));
  });
  process.send?.({ type: 'port', port: server.port } satisfies FromServer);
}

process.on('message', (message: ToServer) => {
  if (message.type === 'plan') void open(message.plan);
  else if (message.type === 'stall') stall = { fromNs: BigInt(message.fromNs), toNs: BigInt(message.toNs) };
  else process.send?.({ type: 'log', log } satisfies FromServer);
});
process.on('disconnect', () => process.exit());
