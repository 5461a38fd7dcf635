import { defineConfig } from 'vitest/config';

// Whole runs mostly wait: three at a time take half of a two-core machine, and leave it room for what they time.
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 3,
  },
});
