// What does an event cost when a core is the limit, beside a reader that does not look at what it reads?

import { median } from '../src/analysis/summary.ts';
import { askChild } from './child.ts';
import type { LoadAnswer, LoadQuestion } from './load-client.ts';
import type { PeerAnswer, PeerQuestion } from './peer.ts';
import { playWithReader } from './raw-reader.ts';
import { type LoadShape, planShape } from './shape.ts';
import { type Bench, type ClientCost, contentReads, costOf } from './timing.ts';
import { startTruthServer } from './truth-server.ts';

export interface SaturatedRound {
  readonly ours: ClientCost;
  /** Sockets of node:net, nothing parsed, nothing stamped. */
  readonly nodeReader: ClientCost;
  readonly cReader: ClientCost | null;
}

export interface Saturated {
  readonly rounds: readonly SaturatedRound[];
  /**
   * Node reader's CPU per event over ours while playing: the median of the rounds in which both took the events one by
   * one, NaN without such a round. 1 would be free parsing.
   */
  readonly share: number;
}

/** A reader that was held up finds several events at once and is cheaper for it: not the same work any more. */
const ONE_BY_ONE = 1.1;

/** Our client and both readers in turn, each against a fresh server that logs nothing. */
export async function measureSaturated(
  bench: Bench,
  shape: LoadShape,
  seed: number,
  count: number,
): Promise<Saturated> {
  const rounds: SaturatedRound[] = [];
  for (let round = 0; round < count; round++) {
    const ours = await withServer(bench, shape, (port) => playOurs(bench, shape, seed, port));
    const nodeReader = await withServer(bench, shape, (port) => playNodeReader(bench, shape, seed, port));
    const { rawReader } = bench;
    const cReader =
      rawReader === null
        ? null
        : await withServer(bench, shape, (port) => playCReader({ ...bench, rawReader }, shape, seed, port));
    rounds.push({ ours, nodeReader, cReader });
  }
  return { rounds, share: shareOf(rounds) };
}

const oneByOne = ({ events, reads }: ClientCost): boolean => events / reads <= ONE_BY_ONE;

export const shareOf = (rounds: readonly Pick<SaturatedRound, 'ours' | 'nodeReader'>[]): number =>
  median(
    rounds
      .filter(({ ours, nodeReader }) => oneByOne(ours) && oneByOne(nodeReader))
      .map(({ ours, nodeReader }) => nodeReader.playCpuUsPerEvent / ours.playCpuUsPerEvent),
  );

async function withServer(
  { pinning, truthServer }: Bench,
  { ttftMs, itlMs }: LoadShape,
  play: (port: number) => Promise<ClientCost>,
): Promise<ClientCost> {
  const server = await startTruthServer({ ttftMs, itlMs, logPath: null, core: pinning?.server, program: truthServer });
  try {
    return await play(server.port);
  } finally {
    await server.stop();
  }
}

async function playOurs({ pinning }: Bench, shape: LoadShape, seed: number, port: number): Promise<ClientCost> {
  const originNs = process.hrtime.bigint();
  const question: LoadQuestion = { port, shape, seed, originNs, workers: 1, rssEveryS: null };
  const answer = await askChild<LoadAnswer>('load-client.ts', question, pinning?.client);
  const events = answer.requests.eventAtNs.length;
  requireAll(events, shape, seed);
  return costOf(answer, events, contentReads(answer));
}

async function playNodeReader({ pinning }: Bench, shape: LoadShape, seed: number, port: number): Promise<ClientCost> {
  const question: PeerQuestion = { port, shape, seed, originNs: process.hrtime.bigint() };
  const answer = await askChild<PeerAnswer>('node-reader-client.ts', question, pinning?.client);
  return costOf(answer, plannedEvents(shape, seed), answer.reads);
}

async function playCReader(
  { rawReader, folder, pinning }: Bench & { readonly rawReader: string },
  shape: LoadShape,
  seed: number,
  port: number,
): Promise<ClientCost> {
  const question: PeerQuestion = { port, shape, seed, originNs: process.hrtime.bigint() };
  const answer = await playWithReader(rawReader, question, folder, pinning?.client);
  const events = answer.seen.reduce((sum, { eventAtNs }) => sum + eventAtNs.length, 0);
  requireAll(events, shape, seed);
  return costOf(answer, events, answer.reads);
}

const plannedEvents = (shape: LoadShape, seed: number): number =>
  planShape(shape, seed).maxTokens.reduce((sum, tokens) => sum + tokens, 0);

/** Costs per event compare only between clients that had the same events. */
function requireAll(events: number, shape: LoadShape, seed: number): void {
  const planned = plannedEvents(shape, seed);
  if (events !== planned) throw new Error(`${events} of ${planned} events came under saturation`);
}
