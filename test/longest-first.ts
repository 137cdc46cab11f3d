import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The longest first: each alone, at the end, would leave the cores idle. */
const LONG = [
  'simulation/histories.test.ts',
  'simulation/postgres/histories.test.ts',
  'stories/postgres/outages.long.test.ts',
  'simulation/planted.long.test.ts',
  'bench/bench.long.test.ts',
]

/** Begins with them after `npm ci`, too: vitest sorts by the times of earlier runs, and without those by the size of files. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- vitest's own, of the class
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

function isLong({ moduleId }: TestSpecification): boolean {
  return LONG.some((name) => moduleId.endsWith(`/test/${name}`))
}
