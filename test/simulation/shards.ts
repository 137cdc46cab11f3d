import { availableParallelism } from 'node:os'
import path from 'node:path'
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
