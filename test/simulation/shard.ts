import process from 'node:process'
import { createGround } from './ground.ts'
import { type Mistake, PLANTED_BUGS } from './planted.ts'
import { createServerGround } from './postgres/ground.ts'
import { hookPostgres } from './postgres/server-steps.ts'
import { hookTimers } from './postgres/timers.ts'
import { KilledError } from './process.ts'
import { answer, type ShardReport, type ShardTask, takeTask } from './shards.ts'
import { simulate } from './simulate.ts'
import { hookSqlite } from './sqlite-steps.ts'
import { addCounts } from './story.ts'

// A process that lives through histories.

// A killed process leaves promises behind that nobody waits for any more.
process.on('unhandledRejection', (error) => {
  if (!(error instanceof KilledError)) throw error
})
const { seeds, planted, url } = await takeTask<ShardTask>()
const mistake: Mistake = PLANTED_BUGS.find(({ name }) => name === planted) ?? {}
hookSqlite(mistake.statement)
hookPostgres(mistake.statement)
hookTimers()
const ground = url ? createServerGround(url) : createGround()
process.on('exit', ground.remove)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

const report: ShardReport = { passed: 0, failed: 0, first: null, counts: {}, whole: '' }
for (const seed of seeds) {
  const { complaint, story } = await simulate(seed, ground, mistake)
  report.counts = addCounts(report.counts, story.counts)
  if (seeds.length === 1) report.whole = story.text(undefined, Number.POSITIVE_INFINITY)
  if (complaint === null) report.passed++
  else {
    report.failed++
    report.first ??= { seed, complaint: complaint.what, story: story.text(complaint.job) }
    if (planted) break
  }
}
answer(report)
