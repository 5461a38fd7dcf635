// `npm run test:streams`: plays stream cases, one at a time, through the load generator's own request path and says,
// line by line, what came out wrong. TOKBENCH_STREAM_CASES names another folder of the same format.
// Exit 1: a case failed; exit 2: there is nothing to play.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../src/core/index.ts';
import { readCase, type StreamCase } from './streams/case.ts';
import { type Miss, missesOf, onlyInTime } from './streams/check.ts';
import { playCase, ScriptedServer } from './streams/play.ts';
import { show } from './vectors/harness.ts';

const SHIPPED = ['streams', 'streams-real'].map((name) => join(import.meta.dirname, 'fixtures', name));

/** Case files of the folders, in order. @throws Error when a folder is missing or holds none. */
function caseFiles(folders: readonly string[]): string[] {
  return folders.flatMap((folder) => {
    const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
    if (names.length === 0) throw new Error(`${folder} holds no stream cases (*.json)`);
    return names.sort().map((name) => join(folder, name));
  });
}

async function missesIn(server: ScriptedServer, path: string): Promise<Miss[]> {
  let played: StreamCase;
  try {
    played = readCase(path);
  } catch (error) {
    return [{ field: '(file)', got: messageOf(error), want: 'a stream case' }];
  }
  const attempt = async () => missesOf(await playCase(server, played), played.expect);
  try {
    const misses = await attempt();
    if (!onlyInTime(misses)) return misses;
    console.log(`once more, missed in time alone: ${path} ${misses.map(describe).join('; ')}`);
    return await attempt();
  } catch (error) {
    return [{ field: '(play)', got: messageOf(error), want: 'one outcome' }];
  }
}

const describe = ({ field, got, want }: Miss): string => `${field}: got ${show(got)}, want ${show(want)}`;

async function main(folders: readonly string[]): Promise<number> {
  let files: string[];
  try {
    files = caseFiles(folders);
  } catch (error) {
    console.error(`test:streams: ${messageOf(error)}`);
    console.error(
      '  TOKBENCH_STREAM_CASES must name a folder of cases as test/fixtures/streams/README.md describes them.',
    );
    return 2;
  }
  const server = new ScriptedServer();
  let failed = 0;
  for (const path of files) {
    const misses = await missesIn(server, path);
    if (misses.length > 0) failed += 1;
    for (const miss of misses) console.log(`FAIL ${path} ${describe(miss)}`);
  }
  server.stop();
  console.log(`${files.length - failed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

const chosen = process.env['TOKBENCH_STREAM_CASES'];
process.exitCode = await main(chosen ? [chosen] : SHIPPED);
