import { defineConfig } from 'vitest/config'

// biome-ignore lint/style/noDefaultExport: vitest reads its configuration from the default export
export default defineConfig({
  test: {
    include: ['test/api/**/*.test.ts', 'test/sync/**/*.test.ts'],
    // Half hours of several processes, for each bug again, would take days.
    exclude: ['test/api/rate/share.test.ts'],
    testTimeout: 60_000,
  },
})
