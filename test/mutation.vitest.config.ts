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
      'test/stories/{full-disk,lock,mirror-file,rivals,signals,stopped-reading}.test.ts',
      'test/stories/crash-*.test.ts',
      // They wait for a server: for defects in what speaks to it alone.
      ...(folders.some((folder) => folder.endsWith('/postgres')) ? [] : ['test/*/postgres/**']),
    ],
    isolate: false,
    setupFiles: 'test/setup.ts',
    globalSetup: folders.some((folder) => folder.endsWith('/postgres'))
      ? 'test/helpers/shared-postgres.ts'
      : [],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
  },
})
