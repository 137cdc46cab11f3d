import { availableParallelism } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { runChild } from './child.ts'
import type { ShardReport, ShardTask } from './shard.ts'
import { addCounts } from './story.ts'

/** Which histories are lived through: `seeds` of them from a seed on, or those of a list. */
type Seeds = { from: number; seeds: number } | { only: readonly number[] }

type SeedRange = Seeds & {
  /** The address of the PostgreSQL server that they use, with the password; none: their mirrors are files. */
  url?: string | null
  /** The name of a planted bug. */
  planted?: string
  /** As many as there are cores, unless it is said here. */
  processes?: number
}

/** Lives through these seeds, in as many processes as there are cores. With a planted bug the first that finds it is enough. */
export async function runSeeds(range: SeedRange): Promise<ShardReport> {
  const { url = null, planted = null } = range
  const seeds = 'only' in range ? range.only : Array.from({ length: range.seeds }, (_, at) => range.from + at)
  const processes = Math.max(1, Math.min(range.processes ?? availableParallelism(), seeds.length))
  const reports = await Promise.all(
    Array.from({ length: processes }, (_, index) => {
      const task: ShardTask = { seeds: seeds.filter((_seed, at) => at % processes === index), planted, url }
      return runChild<ShardReport>(path.resolve(import.meta.dirname, 'shard.ts'), task)
    }),
  )
  return reports.reduce((a, b) => ({
    passed: a.passed + b.passed,
    failed: a.failed + b.failed,
    first: b.first && (!a.first || b.first.seed < a.first.seed) ? b.first : a.first,
    counts: addCounts(a.counts, b.counts),
    whole: a.whole + b.whole,
  }))
}

/** What a planted bug was found by in these histories. Null: none of them shows it. */
export async function findBug(planted: string, seeds: SeedRange) {
  const { first } = await runSeeds({ ...seeds, planted })
  return first
}

/** The histories of each run of the tests, beside those that ever found a mistake. */
export const FAST = { from: 0, seeds: 30 }

const DAY = 86_400_000

/**
 * The first seed of many: of other histories each day, none of which the fast tests play, and all below those of scenes.
 * SEEDS_FROM names another one.
 */
export function rotatingFrom(most: number): number {
  const { SEEDS_FROM } = process.env
  if (SEEDS_FROM !== undefined) return Number(SEEDS_FROM)
  const turns = Math.floor(900_000 / most)
  return 2000 + most * (Math.floor(Date.now() / DAY) % turns)
}
