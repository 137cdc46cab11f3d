import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { createCountsReporter } from './counts-reporter.ts'

// biome-ignore lint/style/noDefaultExport: vitest reads its configuration from the default export
export default defineConfig({
  test: {
    // One a core: many tests wait for processes of their own, and the main one has little to do.
    maxWorkers: Math.max(2, availableParallelism()),
    include: ['test/**/*.test.ts'],
    // Real processes and real files: a loaded machine must not fail a test that is merely slow.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default', createCountsReporter()],
  },
})
