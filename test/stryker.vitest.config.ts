import { defineConfig } from 'vitest/config'

// The tests of one room, for stryker.config.js.

const { ROOM = '' } = process.env

/** What commands read and move is a part of the store. */
const MORE = ROOM === 'store' ? ['test/cli/**/*.test.ts'] : []

// oxlint-disable-next-line import/no-default-export -- vitest reads its configuration from the default export
export default defineConfig({
  test: {
    include: [`test/${ROOM}/**/*.test.ts`, ...MORE],
    exclude: ['**/*.long.test.ts'],
    globalSetup: 'test/helpers/postgres-server.ts',
    setupFiles: 'test/setup.ts',
    // A mutant is a run of its own already.
    isolate: false,
    testTimeout: 120_000,
    // No other user can read the mutated copy.
    env: { MUTATION_TESTS: '1' },
  },
})
