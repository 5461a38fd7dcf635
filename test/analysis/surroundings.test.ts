// Strangers on the board and faults of the board (V22, V23): what is a hit, what only a warning, what cannot be judged.

import { describe, expect, test } from 'vitest';
import type { BoardSurroundings, ProcessOwner, ProcessStretch, SurroundingsEvidence } from '../../src/core/index.ts';
import { assess, hits, quietSurroundings, ruleOf, S } from './support.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;

const cellWith = (surroundings: SurroundingsEvidence | null) =>
  assess({ facts: (facts) => ({ ...facts, surroundings }) });
const quiet = quietSurroundings().boards[0]!;
const judged = (...changes: Partial<BoardSurroundings>[]) =>
  cellWith({ ...quietSurroundings(), boards: changes.map((change) => ({ ...quiet, ...change })) });

type Seen = ProcessStretch['processes'][number];
const seen = (pid: number, owner: ProcessOwner, bytes: number | null = 40 * GIB, grownTo = bytes): Seen => ({
  pid,
  owner,
  minMemoryBytes: bytes,
  maxMemoryBytes: grownTo,
});
const stretch = (stage: ProcessStretch['stage'], fromS: number, toS: number, ...processes: Seen[]): ProcessStretch => ({
  stage,
  fromNs: fromS * S,
  toNs: toS * S,
  polls: 3,
  processes,
});
/** Polls with the server alone until `then`, which follows the load's first 50 s. */
const watched = (server: Seen, ...then: Seen[]): Partial<BoardSurroundings> => ({
  stretches: [
    stretch('before', -30, -30),
    stretch('starting', -29, -10, server),
    stretch('loaded', -9, 50, server),
    stretch('loaded', 52, 221, ...then),
  ],
  afterLoad: [{ pid: server.pid, owner: server.owner, memoryBytes: server.minMemoryBytes }],
});

const SERVER = seen(4711, 'server');
const HIDDEN = seen(90_001, 'hidden');

describe('another process on the board', () => {
  test.each<[string, Partial<BoardSurroundings>, number]>([
    ['of this machine, during the load', watched(SERVER, SERVER, seen(1234, 'other', GIB)), 1234],
    ['of another container, beside a server that is seen', watched(SERVER, SERVER, seen(55, 'hidden', GIB)), 55],
    ['beside a server whose id is hidden', watched(HIDDEN, HIDDEN, seen(90_002, 'hidden', GIB)), 90_002],
    ['of the same size as the hidden server', watched(HIDDEN, HIDDEN, seen(90_002, 'hidden')), 90_002],
    [
      'that took the hidden server’s place with other memory',
      watched(HIDDEN, seen(90_002, 'hidden', 30 * GIB)),
      90_002,
    ],
    [
      'that is the hidden one grown by 300 MiB',
      watched(HIDDEN, seen(90_001, 'hidden', 40 * GIB, 40 * GIB + 300 * MIB)),
      90_001,
    ],
    [
      'that was there before the server was started',
      {
        ...watched(SERVER, SERVER),
        stretches: [stretch('before', -30, -29, seen(7, 'other', GIB)), ...watched(SERVER, SERVER).stretches!.slice(1)],
      },
      7,
    ],
    [
      'while the server was starting',
      {
        stretches: [
          stretch('before', -30, -30),
          stretch('starting', -29, -10, SERVER, seen(8, 'other')),
          stretch('loaded', -9, 221, SERVER),
        ],
      },
      8,
    ],
    [
      'beside a server that was running already',
      watched(seen(1, 'unattributed'), seen(1, 'unattributed'), seen(2, 'unattributed', 2 * GIB)),
      2,
    ],
  ])('%s excludes the cell, and is named', (_name, change, pid) => {
    const cell = judged(change);
    expect(hits(cell)).toEqual(['V22']);
    expect(ruleOf(cell, 'V22')).toMatchObject({
      code: 'foreign_process',
      act: 'X',
      evidence: { strangers: [{ pid }] },
    });
    expect(ruleOf(cell, 'V22').text).toContain(String(pid));
    expect(cell.valid).toBe(false);
  });

  test.each<[string, Partial<BoardSurroundings>, string[]]>([
    ['the server alone', watched(SERVER, SERVER), []],
    [
      'a hidden server that stays as it was',
      watched(HIDDEN, seen(90_001, 'hidden', 40 * GIB, 40 * GIB + 200 * MIB)),
      ['pids_hidden'],
    ],
    ['a hidden server of unknown memory', watched(seen(9, 'hidden', null), seen(9, 'hidden', null)), ['pids_hidden']],
    ['an attached server', watched(seen(1, 'unattributed'), seen(1, 'unattributed')), ['server_unattributed']],
    [
      'a server of the launch before that took its time to go',
      {
        ...watched(SERVER, SERVER),
        stretches: [stretch('before', -32, -31, seen(7, 'hidden')), ...watched(SERVER, SERVER).stretches!],
      },
      [],
    ],
  ])('%s passes', (_name, change, flags) => {
    expect(ruleOf(judged(change), 'V22')).toMatchObject({ status: 'pass', evidence: { strangers: [], flags } });
  });

  test('an empty list is a warning: nobody would be seen', () => {
    const cell = judged({ stretches: [stretch('before', -30, -30), stretch('loaded', -9, 221)], afterLoad: [] });
    expect(ruleOf(cell, 'V22')).toMatchObject({ status: 'hit', code: 'processes_unseen', act: 'W' });
    expect(cell.valid).toBe(true);
  });

  test('a list that the driver does not have is a warning, one that fails is no evidence', () => {
    const none = { stretches: [], afterLoad: null, failedPolls: 9 };
    expect(ruleOf(judged({ ...none, processesCode: 'NOT_SUPPORTED' }), 'V22')).toMatchObject({
      code: 'processes_unseen',
      act: 'W',
    });
    expect(ruleOf(judged({ ...none, processesCode: 'UNKNOWN' }), 'V22')).toMatchObject({
      code: 'no_evidence',
      act: 'X',
    });
  });
});

test('a list that fails before the window has ended is no evidence for the rest of it', () => {
  const cut = quiet.stretches.map((each) => ({ ...each, toNs: Math.min(each.toNs, 60 * S) }));
  const cell = judged({ stretches: cut, failedPolls: 75, processesCode: 'UNKNOWN' });
  expect(ruleOf(cell, 'V22')).toMatchObject({
    status: 'hit',
    code: 'no_evidence',
    act: 'X',
    evidence: { listedToNs: 60 * S, failedPolls: 75, processesCode: 'UNKNOWN' },
  });
});

describe('several boards', () => {
  test('a stranger or a fault on the second one counts, and its number is named', () => {
    const cell = judged(
      {},
      { ...watched(SERVER, SERVER, seen(1234, 'other', GIB)), ecc: { first: 0, last: 1, code: null } },
    );
    expect(hits(cell)).toEqual(['V22', 'V23']);
    expect(ruleOf(cell, 'V22')).toMatchObject({ code: 'foreign_process', evidence: { board: 1 } });
    expect(ruleOf(cell, 'V22').text).toMatch(/^board 1: .*1234/);
    expect(ruleOf(cell, 'V23')).toMatchObject({ act: 'L', evidence: { board: 1 } });
  });

  test('the same server on both is alone on both', () => {
    expect(ruleOf(judged({}, {}), 'V22').status).toBe('pass');
  });

  test('a watch that saw fewer boards than were sampled is no evidence', () => {
    const cell = assess({ samples: (s) => ({ board: (s.atNs / 20e6) % 2 === 0 ? 0 : 1 }) });
    expect(ruleOf(cell, 'V22').code).toBe('no_evidence');
  });
});

describe('a fault of the board', () => {
  const faults = (change: Partial<BoardSurroundings['faults']>) => ({ ...quiet.faults, ...change });

  test.each<[string, Partial<BoardSurroundings>, RegExp]>([
    ['an Xid', { faults: faults({ sightings: [{ atNs: S, kind: 'xid', number: 79 }] }) }, /Xid 79/],
    ['a lost board', { faults: faults({ sightings: [{ atNs: S, kind: 'board_lost', number: null }] }) }, /board lost/],
    ['memory errors', { ecc: { first: 2, last: 5, code: null } }, /3 memory errors/],
    [
      'an Xid from the kernel log of a board without ECC',
      {
        ecc: { first: null, last: null, code: 'NOT_SUPPORTED' },
        faults: { source: 'kernel_log', code: 'NOT_SUPPORTED', sightings: [{ atNs: S, kind: 'xid', number: 31 }] },
      },
      /Xid 31/,
    ],
  ])('%s excludes this and the later cells of the launch', (_name, change, text) => {
    const cell = judged(change);
    expect(hits(cell)).toEqual(['V23']);
    expect(ruleOf(cell, 'V23')).toMatchObject({ code: 'ecc_or_fault', act: 'L', text: expect.stringMatching(text) });
    expect(cell.valid).toBe(false);
  });

  test('errors from before the launch are no fault of it', () => {
    expect(ruleOf(judged({ ecc: { first: 7, last: 7, code: null } }), 'V23').status).toBe('pass');
  });

  test('without ECC the rule does not apply, and says what was seen of driver faults', () => {
    const outcome = ruleOf(judged({ ecc: { first: null, last: null, code: 'NOT_SUPPORTED' } }), 'V23');
    expect(outcome).toMatchObject({
      status: 'not_applicable',
      text: expect.stringContaining('no driver fault by the driver events'),
    });
  });

  test('where driver faults cannot be seen, the memory errors are judged alone and the rule says so', () => {
    const outcome = ruleOf(judged({ faults: faults({ source: 'none', code: 'NOT_SUPPORTED' }) }), 'V23');
    expect(outcome).toMatchObject({
      status: 'pass',
      text: expect.stringContaining('not visible here (NOT_SUPPORTED)'),
    });
  });

  test('memory errors that cannot be read are no evidence', () => {
    expect(ruleOf(judged({ ecc: { first: null, last: null, code: 'OPERATING_SYSTEM' } }), 'V23').code).toBe(
      'no_evidence',
    );
  });
});

test.each([
  ['missing', null],
  ['that ends inside the window', quietSurroundings(100 * S)],
])('a watch %s is no evidence for either rule', (_name, surroundings) => {
  const cell = cellWith(surroundings);
  expect([ruleOf(cell, 'V22').code, ruleOf(cell, 'V23').code]).toEqual(['no_evidence', 'no_evidence']);
});
