import { defineConfig } from 'vitest/config'

// The tests of one room, for stryker.config.js.

const { ROOM = '' } = process.env

// biome-ignore lint/style/noDefaultExport: vitest reads its configuration from the default export
export default defineConfig({
  test: {
    include: [`test/${ROOM}/**/*.test.ts`],
    exclude: ['**/postgres/**', '**/*.long.test.ts'],
    setupFiles: 'test/setup.ts',
    // A mutant is a run of its own already.
    isolate: false,
    testTimeout: 120_000,
    // No other user can read the mutated copy.
    env: { MUTATION_TESTS: '1' },
  },
})
