import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { createCountsReporter } from './counts-reporter.ts'
import { LongestFirst } from './longest-first.ts'

// biome-ignore lint/style/noDefaultExport: vitest reads its configuration from the default export
export default defineConfig({
  test: {
    // Two a core: most of the time goes to tests that wait, for processes of their own or for a clock.
    maxWorkers: 2 * Math.max(2, availableParallelism()),
    sequence: { sequencer: LongestFirst },
    include: ['test/**/*.test.ts'],
    // Real processes and real files: a loaded machine must not fail a test that is merely slow.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default', createCountsReporter()],
  },
})
