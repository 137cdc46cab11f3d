import process from 'node:process'
import { addCounts, type Counts } from './counts.ts'
import { createGround } from './ground.ts'
import { createServerGround } from './postgres/ground.ts'
import { hookPostgres } from './postgres/server-steps.ts'
import { hookTimers } from './postgres/timers.ts'
import { KilledError } from './process.ts'
import { simulate } from './simulate.ts'
import { hookSqlite } from './sqlite-steps.ts'

/**
 * Lives through the seeds that its command line says: first, end, step, and whether the first failure is enough. On the
 * PostgreSQL server that SIMULATION_POSTGRES names; as many as SIMULATION_SECONDS are enough for.
 */
export interface ShardReport {
  passed: number
  failed: number
  /** Of the lowest seed that failed. */
  first: { seed: number; complaint: string; story: string } | null
  counts: Counts
  /** Everything that happened, where only one seed was asked for. */
  whole: string
}

async function runShard(from: number, end: number, step: number, stopAtFirst: boolean): Promise<ShardReport> {
  const report: ShardReport = { passed: 0, failed: 0, first: null, counts: {}, whole: '' }
  const url = process.env.SIMULATION_POSTGRES
  const ground = url === undefined ? createGround() : createServerGround(url)
  process.on('exit', ground.remove)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
  const until = Date.now() + Number(process.env.SIMULATION_SECONDS ?? Number.POSITIVE_INFINITY) * 1000
  for (let seed = from; seed < end && Date.now() < until; seed += step) {
    const { complaints, story, whole, counts } = await simulate(seed, ground)
    report.counts = addCounts(report.counts, counts)
    if (end - from <= step) report.whole = whole()
    const [complaint] = complaints
    if (complaint === undefined) report.passed++
    else {
      report.failed++
      report.first ??= { seed, complaint, story }
      if (stopAtFirst) break
    }
  }
  return report
}

// A killed process leaves promises behind that nobody waits for any more.
process.on('unhandledRejection', (error) => {
  if (!(error instanceof KilledError)) throw error
})
hookSqlite()
hookPostgres()
hookTimers()
const [from = 0, end = 0, step = 1, first = 0] = process.argv.slice(2).map(Number)
const report = await runShard(from, end, step, first === 1)
process.stdout.write(JSON.stringify(report), () => process.exit(0))
