import process from 'node:process'
import { parseArgs } from 'node:util'
import { startPostgres } from '../helpers/postgres-server.ts'
import { KINDS } from '../lab/coverage/kinds.ts'
import * as coverage from '../lab/coverage/table.ts'
import * as freshness from '../lab/freshness/lines.ts'
import { runSeeds, seedsFrom } from './shards.ts'

// `npm run simulate`: README.md says what for.

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '2000' },
    from: { type: 'string', default: '0' },
    store: { type: 'string', default: 'sqlite' },
    coverage: { type: 'boolean' },
    freshness: { type: 'boolean' },
  },
})
const say = (...texts: string[]) => process.stdout.write(`${texts.join('\n')}\n`)

/** Tells the story of the first history that failed, and how often what happened. */
async function simulate(): Promise<void> {
  const seeds = seedsFrom(Number(values.from), Number(values.seeds))
  const server = values.store === 'postgres' ? await startPostgres() : null
  if (server?.missing) throw new Error(server.missing)
  const { passed, failed, first, counts } = await runSeeds({ seeds, url: server?.url })
  const counted = Object.entries(counts).map(([name, count]) => `${count} ${name}`)
  say(counted.join(', '))
  if (first) say('', `seed ${first.seed}: ${first.complaint}`, '', first.story)
  say('', `${passed} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
  await server?.stop()
}

// Both tables are in Markdown, with a line as soon as it is measured.
if (values.coverage) {
  say(coverage.HEADING)
  for (const kind of Object.keys(KINDS)) say(await coverage.measureKind(kind, 1000))
} else if (values.freshness) {
  say(freshness.HEADING)
  for (const name of Object.keys(freshness.LINES)) say(freshness.lineText(name, 1))
} else await simulate()
