import process from 'node:process'
import { createGround } from './ground.ts'
import { type Mistake, PLANTED_BUGS } from './planted.ts'
import { createServerGround } from './postgres/ground.ts'
import { hookPostgres } from './postgres/server-steps.ts'
import { hookTimers } from './postgres/timers.ts'
import { KilledError } from './process.ts'
import { answer, type Lived, type ShardTask, takeTask } from './shards.ts'
import { simulate } from './simulate.ts'
import { hookSqlite } from './sqlite-steps.ts'

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

const lived: Lived[] = []
for (const seed of seeds) {
  const { complaint, story } = await simulate(seed, ground, mistake)
  let told = seeds.length === 1 ? story.text(undefined, Number.POSITIVE_INFINITY) : ''
  if (complaint) told = story.text(complaint.job)
  lived.push({ seed, complaint: complaint?.what ?? null, story: told, counts: story.counts })
  if (complaint && planted) break
}
answer(lived)
