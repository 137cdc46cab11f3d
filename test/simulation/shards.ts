import { availableParallelism } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { runChild } from './child.ts'
import { addCounts } from './counts.ts'
import type { ShardReport, ShardTask } from './shard.ts'

/** Which histories are lived through: `seeds` of them from a seed on, or those of a list. */
export type Seeds = { from: number; seeds: number } | { only: readonly number[] }

export type SeedRange = Seeds & {
  /** The address of the PostgreSQL server that they use, with the password; none: their mirrors are files. */
  url?: string | null
  /** The name of a planted bug. */
  planted?: string
  stopAtFirst?: boolean
  /** As many as there are cores, unless it is said here. */
  processes?: number
}

const SHARD = path.resolve(import.meta.dirname, 'shard.ts')

/** Lives through these seeds, in as many processes as there are cores. Throws where one of them breaks down. */
export async function runSeeds(range: SeedRange): Promise<ShardReport> {
  const { url = null, planted = null, stopAtFirst = false } = range
  const many = 'only' in range ? range.only.length : range.seeds
  const processes = Math.max(1, Math.min(range.processes ?? availableParallelism(), many))
  const reports = await Promise.all(
    Array.from({ length: processes }, (_, index) => {
      const task: ShardTask = { seeds: shareOf(range, index, processes), planted, stopAtFirst }
      return runChild<ShardReport>(
        SHARD,
        [JSON.stringify(task)],
        url === null ? {} : { SIMULATION_POSTGRES: url },
      )
    }),
  )
  return reports.reduce(joined)
}

function shareOf(range: Seeds, index: number, step: number): ShardTask['seeds'] {
  if ('only' in range) return { only: range.only.filter((_, at) => at % step === index) }
  return { from: range.from + index, end: range.from + range.seeds, step }
}

function joined(a: ShardReport, b: ShardReport): ShardReport {
  const firsts = [a.first, b.first].filter((first) => first !== null)
  return {
    passed: a.passed + b.passed,
    failed: a.failed + b.failed,
    first: firsts.toSorted((one, other) => one.seed - other.seed)[0] ?? null,
    counts: addCounts(a.counts, b.counts),
    whole: a.whole + b.whole,
  }
}

/** What a planted bug was found by. */
export interface FoundBug {
  seed: number
  complaint: string
}

/** Looks for what a planted bug does in these histories. Null: none of them shows it. */
export async function findBug(name: string, seeds: SeedRange): Promise<FoundBug | null> {
  const { first } = await runSeeds({ ...seeds, planted: name, stopAtFirst: true })
  return first && { seed: first.seed, complaint: first.complaint }
}

/** The histories of each run of the tests, beside those that ever found a mistake. */
export const FAST = { from: 0, seeds: 80 }

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
