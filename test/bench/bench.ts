import fs from 'node:fs'
import path from 'node:path'
import { type Row, ratioOf } from './row.ts'
import type { Sizes } from './sizes.ts'
import { digits } from './table.ts'

/** What a scenario is given. */
export interface Bench {
  sizes: Sizes
  /** Says what goes on, for who waits. */
  tell: (words: string) => void
  /** An empty folder, gone at the end. */
  newFolder: () => string
  /** What more than one scenario needs is made once. */
  shared: <T>(name: string, make: () => Promise<T>) => Promise<T>
}

export interface Scenario {
  name: string
  run: (bench: Bench) => Promise<Row[]>
}

/** `folder` is the caller's to remove. */
export function createBench(options: { sizes: Sizes; folder: string; tell: (words: string) => void }): Bench {
  const made = new Map<string, Promise<unknown>>()
  let folders = 0
  return {
    sizes: options.sizes,
    tell: options.tell,
    newFolder: () => {
      const folder = path.join(options.folder, String(++folders))
      fs.mkdirSync(folder)
      return folder
    },
    shared: <T>(name: string, make: () => Promise<T>) => {
      const there = made.get(name) ?? make()
      made.set(name, there)
      return there as Promise<T>
    },
  }
}

/** One scenario after another, so that none disturbs the other. */
export async function runScenarios(scenarios: readonly Scenario[], bench: Bench): Promise<Row[]> {
  const rows: Row[] = []
  for (const { name, run } of scenarios) {
    bench.tell(name)
    const began = performance.now()
    const these = await run(bench)
    rows.push(...these)
    // Whoever ends it before the table has these at least.
    for (const row of these)
      bench.tell(`  ${row.what}, against ${row.against}: ${digits(ratioOf(row).median)}`)
    bench.tell(`  took ${Math.round((performance.now() - began) / 1000)} s`)
  }
  return rows
}
