// `npm run test:vectors`: plays a vector file against the product and says, line by line, what it does not reproduce.
// TOKBENCH_VECTORS names another file of the same layout. Exit 1: a difference; exit 2: the file cannot be played.

import { messageOf } from '../src/core/index.ts';
import {
  type Adapter,
  loadAdapters,
  playGroup,
  readVectorFile,
  SHIPPED_VECTORS,
  show,
  type VectorGroup,
} from './vectors/harness.ts';

function playAndPrint(group: VectorGroup, adapter: Adapter): { passed: number; failed: number } {
  const results = playGroup(group, adapter);
  for (const result of results) {
    for (const { path, got, want } of result.differences) {
      console.log(`FAIL ${group.name} ${result.id} ${path || '(answer)'}: got ${show(got)}, want ${show(want)}`);
    }
  }
  const failed = results.filter((result) => result.differences.length > 0).length;
  const passed = results.length - failed;
  console.log(`${failed === 0 ? 'ok  ' : 'FAIL'} ${group.name}: ${passed} of ${results.length} cases`);
  return { passed, failed };
}

async function main(path: string): Promise<number> {
  let groups: VectorGroup[];
  try {
    groups = readVectorFile(path);
  } catch (error) {
    console.error(`test:vectors: ${messageOf(error)}`);
    console.error('  TOKBENCH_VECTORS must name a JSON file laid out as test/fixtures/vectors/README.md says.');
    return 2;
  }
  let adapters: Map<string, Adapter>;
  try {
    adapters = await loadAdapters();
  } catch (error) {
    console.log(`FAIL adapters: ${messageOf(error)}`);
    return 1;
  }
  let passed = 0;
  let failed = 0;
  const uncovered: string[] = [];
  for (const group of groups) {
    const adapter = adapters.get(group.name);
    if (adapter === undefined) {
      uncovered.push(group.name);
      continue;
    }
    const counts = playAndPrint(group, adapter);
    passed += counts.passed;
    failed += counts.failed;
  }
  for (const name of uncovered) console.log(`not covered yet: ${name}`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

process.exitCode = await main(process.env['TOKBENCH_VECTORS'] || SHIPPED_VECTORS);
