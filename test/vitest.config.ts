import { availableParallelism } from 'node:os'
import path from 'node:path'
import { defineConfig } from 'vitest/config'
import { createCountsReporter } from './counts-reporter.ts'
import { LONG } from './helpers/long.ts'
import { LongestFirst } from './longest-first.ts'

const POSTGRES = 'test/*/postgres/**/*.test.ts'

/** They import nock, which takes over all connections of its process, those to servers of other tests too. */
const AT_THE_WIRE = 'test/api/client*.test.ts'

/** Left to `npm run test:all`. */
const LEFT = LONG ? [] : ['**/*.long.test.ts']

// oxlint-disable-next-line import/no-default-export -- vitest reads its configuration from the default export
export default defineConfig({
  test: {
    // Two a core: most of the time goes to tests that wait, for processes of their own or for a clock.
    maxWorkers: 2 * Math.max(2, availableParallelism()),
    // Files of a project share processes and modules, which takes a quarter of the time away; what they would leave to each other
    // ends with setup.ts.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    setupFiles: 'test/setup.ts',
    // Tests start hundreds of processes, and half the time of a start is the compiling of ours.
    env: { NODE_COMPILE_CACHE: path.resolve(import.meta.dirname, '../node_modules/.cache/compiled') },
    // Real processes and real files: a loaded machine must not fail a test that is merely slow.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default', createCountsReporter()],
    projects: [
      {
        extends: true,
        test: {
          name: 'files',
          include: ['test/**/*.test.ts'],
          exclude: [POSTGRES, AT_THE_WIRE, ...LEFT],
        },
      },
      {
        extends: true,
        test: { name: 'wire', include: [AT_THE_WIRE] },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: [POSTGRES],
          exclude: LEFT,
          globalSetup: 'test/helpers/postgres-server.ts',
        },
      },
    ],
  },
})
