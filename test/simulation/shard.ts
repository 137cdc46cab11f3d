import process from 'node:process'
import { addCounts, type Counts } from './counts.ts'
import { createGround } from './ground.ts'
import type { Mistake } from './planted.ts'
import { PLANTED_BUGS } from './planted.ts'
import { createServerGround } from './postgres/ground.ts'
import { SERVER_BUGS } from './postgres/planted.ts'
import { hookPostgres } from './postgres/server-steps.ts'
import { hookTimers } from './postgres/timers.ts'
import { KilledError } from './process.ts'
import { simulate } from './simulate.ts'
import { hookSqlite } from './sqlite-steps.ts'

/**
 * What the command line of this script says. The histories are on the PostgreSQL server that SIMULATION_POSTGRES names; as
 * many as SIMULATION_SECONDS are enough for.
 */
export interface ShardTask {
  seeds: { from: number; end: number; step: number } | { only: readonly number[] }
  /** The name of a planted bug. */
  planted: string | null
  /** Whether the first failure is enough. */
  stopAtFirst: boolean
}

export interface ShardReport {
  passed: number
  failed: number
  /** Of the lowest seed that failed. */
  first: { seed: number; complaint: string; story: string } | null
  counts: Counts
  /** Everything that happened, where there was only one seed. */
  whole: string
}

function mistakeOf(name: string | null): Mistake {
  if (name === null) return {}
  const planted = [...PLANTED_BUGS, ...SERVER_BUGS].find((bug) => bug.name === name)
  if (!planted) throw new Error(`there is no planted bug of this name: ${name}`)
  return planted
}

function* seedsOf(seeds: ShardTask['seeds']): Generator<number> {
  if ('only' in seeds) yield* seeds.only
  else for (let seed = seeds.from; seed < seeds.end; seed += seeds.step) yield seed
}

async function runShard({ seeds, stopAtFirst }: ShardTask, mistake: Mistake): Promise<ShardReport> {
  const report: ShardReport = { passed: 0, failed: 0, first: null, counts: {}, whole: '' }
  const url = process.env.SIMULATION_POSTGRES
  const ground = url === undefined ? createGround() : createServerGround(url)
  process.on('exit', ground.remove)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
  const until = Date.now() + Number(process.env.SIMULATION_SECONDS ?? Number.POSITIVE_INFINITY) * 1000
  let lived = 0
  for (const seed of seedsOf(seeds)) {
    if (Date.now() >= until) break
    const { complaints, story, whole, counts } = await simulate(seed, ground, mistake)
    report.counts = addCounts(report.counts, counts)
    report.whole = ++lived === 1 ? whole() : ''
    const [complaint] = complaints
    if (complaint === undefined) report.passed++
    else {
      report.failed++
      if (seed < (report.first?.seed ?? Number.POSITIVE_INFINITY)) report.first = { seed, complaint, story }
      if (stopAtFirst) break
    }
  }
  return report
}

// A killed process leaves promises behind that nobody waits for any more.
process.on('unhandledRejection', (error) => {
  if (!(error instanceof KilledError)) throw error
})
const task = JSON.parse(process.argv[2] ?? '') as ShardTask
const mistake = mistakeOf(task.planted)
hookSqlite(mistake.statement)
hookPostgres(mistake.statement)
hookTimers()
const report = await runShard(task, mistake)
process.stdout.write(JSON.stringify(report), () => process.exit(0))
