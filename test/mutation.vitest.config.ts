import process from 'node:process'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { readReached } from './mutation-files.ts'

/** Folders of tests, and files without their ending, from `test/mutation.ts`. */
const folders = (process.env.MUTATION_TESTS ?? 'test/api test/sync').split(' ')

/** A defect that lets a test wait for ever costs this long; what is slow without one is not hurried. */
const LONGEST_MS = process.env.MUTATION_RUN === 'reach' ? 120_000 : 20_000

/** The files with the fastest tests first: what they notice is left out of the others. */
class FastestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const byFile = Map.groupBy(readReached(), ({ file }) => file)
    const timeOf = ({ moduleId }: TestSpecification) => {
      const its = byFile.get(moduleId) ?? []
      return its.reduce((sum, { ms }) => sum + ms, 0) / Math.max(its.length, 1)
    }
    return files.toSorted((one, other) => timeOf(one) - timeOf(other))
  }
}

// biome-ignore lint/style/noDefaultExport: vitest reads its configuration from the default export
export default defineConfig({
  test: {
    include: folders.map((folder) => `${folder}{,/**/*}.test.ts`),
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
    sequence: { sequencer: FastestFirst },
    setupFiles: 'test/setup.ts',
    globalSetup: folders.some((folder) => folder.endsWith('/postgres'))
      ? 'test/helpers/shared-postgres.ts'
      : [],
    testTimeout: LONGEST_MS,
    hookTimeout: LONGEST_MS,
    // Of defects, which let promises fail that nobody waits for.
    dangerouslyIgnoreUnhandledErrors: true,
    reporters: [],
    expect: { poll: { timeout: 10_000 } },
  },
})
