// Runs the mock engine in a process of its own: engine.ts JSON, where JSON overrides the defaults.
import { runMockEngine } from '../../../src/sim/mock-engine.ts';
import { MOCK_ENGINE_DEFAULTS } from '../../../src/sim/mock-options.ts';

process.exitCode = await runMockEngine({ ...MOCK_ENGINE_DEFAULTS, ...JSON.parse(process.argv[2] ?? '{}') });
