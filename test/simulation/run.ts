import process from 'node:process'
import { parseArgs } from 'node:util'
import { startPostgres } from '../helpers/postgres-server.ts'
import { KINDS } from '../lab/coverage/kinds.ts'
import { HEADING, measureKind } from '../lab/coverage/table.ts'
import * as lines from '../lab/freshness/lines.ts'
import { PLANTED_BUGS } from './planted.ts'
import { runSeeds } from './shards.ts'

const USAGE = `npm run simulate -- [options]

--seeds N [--from S]               lives through these histories (2000), and tells the story of the first that failed
--planted [--seeds N]              looks for a seed that finds each planted bug
--store postgres                   either of them on a PostgreSQL server
--coverage [--walks N] [--kind K]  measures how often walks over lists that move are wrong
--freshness [--list L] [--seed N]  measures how old rows of different lists become, beside the best that could be
`

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'sqlite' },
    seeds: { type: 'string', default: '2000' },
    from: { type: 'string', default: '0' },
    planted: { type: 'boolean', default: false },
    coverage: { type: 'boolean', default: false },
    walks: { type: 'string', default: '1000' },
    kind: { type: 'string', multiple: true, default: Object.keys(KINDS) },
    freshness: { type: 'boolean', default: false },
    list: { type: 'string', multiple: true, default: Object.keys(lines.LINES) },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
})
const say = (...texts: string[]) => process.stdout.write(`${texts.join('\n')}\n`)

async function runHistories(from: number, seeds: number, url: string | null): Promise<boolean> {
  const { passed, failed, first, counts } = await runSeeds({ from, seeds, url })
  const told = Object.entries(counts).map(([name, count]) => `${count} ${name}`)
  say(told.join(', '), '')
  if (first) say(`seed ${first.seed}: ${first.complaint}`, '', first.story, '')
  say(`${passed} passed, ${failed} failed`)
  return failed === 0
}

async function findPlanted(from: number, seeds: number, url: string | null): Promise<boolean> {
  let missed = 0
  for (const { name, isOnServer = false } of PLANTED_BUGS) {
    if (isOnServer !== (url !== null)) continue
    const { first } = await runSeeds({ from, seeds, url, planted: name })
    if (!first) missed++
    say(name, `    ${first ? `seed ${first.seed}: ${first.complaint}` : `not found in ${seeds} histories`}`)
  }
  return missed === 0
}

async function simulate(): Promise<boolean> {
  const [from, seeds] = [Number(values.from), Number(values.seeds)]
  const task = values.planted ? findPlanted : runHistories
  if (values.store !== 'postgres') return task(from, seeds, null)
  const server = await startPostgres()
  if (server.missing !== null) throw new Error(server.missing)
  try {
    return await task(from, seeds, server.url)
  } finally {
    await server.stop()
  }
}

// Both tables are in Markdown, with a line as soon as it is measured.
if (values.help) process.stdout.write(USAGE)
else if (values.coverage) {
  say(HEADING)
  for (const kind of values.kind) say(await measureKind(kind, Number(values.walks)))
} else if (values.freshness) {
  say(lines.HEADING)
  for (const name of values.list) say(lines.lineText(name, Number(values.seed)))
} else process.exitCode = (await simulate()) ? 0 : 1
