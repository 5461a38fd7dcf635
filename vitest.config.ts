import { defineConfig } from 'vitest/config';

// Two worker processes at most: the suite must not starve itself on a two-core machine.
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 2,
  },
});
