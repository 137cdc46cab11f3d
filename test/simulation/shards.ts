import { availableParallelism } from 'node:os'
import path from 'node:path'
import { runChild } from './child.ts'
import { addCounts } from './counts.ts'
import type { ShardReport } from './shard.ts'

export interface SeedRange {
  from: number
  seeds: number
  /** Variables of the environment beside our own: those that plant a bug. */
  env?: Record<string, string>
  stopAtFirst?: boolean
  /** As many as there are cores, unless it is said here. */
  processes?: number
}

const SHARD = path.resolve(import.meta.dirname, 'shard.ts')

/** Lives through these seeds, in as many processes as there are cores. Throws where one of them breaks down. */
export async function runSeeds(range: SeedRange): Promise<ShardReport> {
  const processes = Math.max(1, Math.min(range.processes ?? availableParallelism(), range.seeds))
  const reports = await Promise.all(
    Array.from({ length: processes }, (_, index) => runShard(range, index, processes)),
  )
  return reports.reduce(joined)
}

async function runShard(range: SeedRange, index: number, step: number): Promise<ShardReport> {
  const { from, seeds, env = {}, stopAtFirst = false } = range
  const numbers = [from + index, from + seeds, step, stopAtFirst ? 1 : 0].map(String)
  return runChild(SHARD, numbers, env)
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
