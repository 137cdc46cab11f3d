import process from 'node:process'
import { defineConfig } from 'vitest/config'

/** Folders of tests, from `test/mutation.ts`. */
const folders = (process.env.MUTATION_TESTS ?? 'test/api test/sync').split(' ')

// biome-ignore lint/style/noDefaultExport: vitest reads its configuration from the default export
export default defineConfig({
  test: {
    include: folders.map((folder) => `${folder}/**/*.test.ts`),
    exclude: [
      '**/*.long.test.ts',
      // Half hours of several processes, for each defect again, would take days.
      'test/api/rate/share.test.ts',
      // Processes of another user, which cannot read the copy of the source that is mutated; no defect is switched on there either.
      'test/cli/read-target.test.ts',
      // They wait for a server: for defects in what speaks to it alone.
      ...(folders.some((folder) => folder.endsWith('/postgres')) ? [] : ['test/*/postgres/**']),
    ],
    runner: 'test/mutation-runner.ts',
    isolate: false,
    maxWorkers: 1,
    setupFiles: 'test/setup.ts',
    globalSetup: folders.some((folder) => folder.endsWith('/postgres'))
      ? 'test/helpers/shared-postgres.ts'
      : [],
    // A defect that lets a test wait for ever costs this long; what is slow without one is not hurried.
    testTimeout: process.env.MUTATION_RUN === 'reach' ? 120_000 : 20_000,
    hookTimeout: 60_000,
    // Of defects, which let promises fail that nobody waits for.
    dangerouslyIgnoreUnhandledErrors: true,
    reporters: [],
    expect: { poll: { timeout: 10_000 } },
  },
})
