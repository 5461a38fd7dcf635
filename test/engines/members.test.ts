import { describe, expect, test } from 'vitest';
import { type EngineGroup, lineOf, membersOf } from '../../src/engines/members.ts';
import { type ProcessEntry, parseStat } from '../../src/engines/proc.ts';

const entry = (pid: number, over: Partial<ProcessEntry> = {}): ProcessEntry => ({
  pid,
  parent: 1,
  group: pid,
  session: pid,
  state: 'S',
  startTime: '1000',
  ...over,
});

const GROUP: EngineGroup = { pgid: 100, startTime: '1000', runId: 'r', known: new Map() };

function pids(table: ProcessEntry[], over: Partial<EngineGroup> = {}, tagged: number[] = [], exclude: number[] = []) {
  const group = { ...GROUP, ...over };
  const members = membersOf({ table, group, hasTag: (pid) => tagged.includes(pid), exclude: new Set(exclude) });
  return members.map((member) => member.pid).sort((a, b) => a - b);
}

describe('the members of an engine', () => {
  test('are those of its group and of its session', () => {
    const table = [entry(100), entry(101, { group: 100 }), entry(102, { session: 100 }), entry(103)];
    expect(pids(table)).toEqual([100, 101, 102]);
  });

  test('are those that carry the tag, in whatever session', () => {
    expect(pids([entry(100), entry(200), entry(201)], {}, [200])).toEqual([100, 200]);
  });

  test('are the descendants of members, grandchildren in a session of their own included', () => {
    const table = [entry(300, { parent: 200 }), entry(200, { parent: 100 }), entry(100)];
    expect(pids(table)).toEqual([100, 200, 300]);
  });

  test('are those seen before, as long as the start time is the same', () => {
    const known = new Map([
      [200, '1000'],
      [201, '1000'],
    ]);
    expect(pids([entry(200), entry(201, { startTime: '5000' })], { known })).toEqual([200]);
  });

  test('started no earlier than the leader, tag or not', () => {
    const table = [entry(100), entry(50, { group: 100, startTime: '999' }), entry(51, { startTime: '999' })];
    expect(pids(table, {}, [51])).toEqual([100]);
  });

  test('are never those of a group whose number was given away after the leader died', () => {
    const table = [entry(100, { startTime: '9000' }), entry(101, { group: 100, startTime: '9001' }), entry(102)];
    expect(pids(table, {}, [102])).toEqual([102]);
  });

  test('start times are compared as numbers, not as text', () => {
    expect(
      pids([entry(100, { startTime: '999' }), entry(101, { group: 100, startTime: '1000' })], { startTime: '999' }),
    ).toEqual([100, 101]);
  });

  test('are never we ourselves or our ancestors', () => {
    expect(pids([entry(100), entry(7, { group: 100 })], {}, [7], [7])).toEqual([100]);
  });
});

test('a line of descent ends at the first process and survives a loop', () => {
  const table = [entry(3, { parent: 2 }), entry(2, { parent: 1 }), entry(1, { parent: 0 })];
  expect([...lineOf(3, table)]).toEqual([3, 2, 1]);
  expect([...lineOf(5, [entry(5, { parent: 6 }), entry(6, { parent: 5 })])]).toEqual([5, 6]);
});

describe('/proc/<pid>/stat', () => {
  const tail = '1 42 43 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 8192 100';

  test('is read past a name with spaces and parentheses', () => {
    expect(parseStat(`77 (VLLM::) (x) y) Z ${tail}`)).toEqual({
      pid: 77,
      state: 'Z',
      parent: 1,
      group: 42,
      session: 43,
      startTime: '987654',
    });
  });

  test.each(['', 'nonsense', '12 (cut) S 1 2'])('%j is nobody', (text) => {
    expect(parseStat(text)).toBeNull();
  });
});
