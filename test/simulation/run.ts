import process from 'node:process'
import { parseArgs } from 'node:util'
import { startPostgres } from '../helpers/postgres-server.ts'
import { KINDS } from '../lab/coverage/kinds.ts'
import { HEADING, measureKind } from '../lab/coverage/table.ts'
import * as lines from '../lab/freshness/lines.ts'
import { PLANTED_BUGS } from './planted.ts'
import { runSeeds, seedsFrom } from './shards.ts'

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

async function simulate(): Promise<void> {
  const seeds = seedsFrom(Number(values.from), Number(values.seeds))
  const server = values.store === 'postgres' ? await startPostgres() : null
  if (server?.missing) throw new Error(server.missing)
  const url = server?.url
  if (!values.planted) {
    const { passed, failed, first, counts } = await runSeeds({ seeds, url })
    say(
      Object.entries(counts)
        .map(([name, count]) => `${count} ${name}`)
        .join(', '),
    )
    if (first) say('', `seed ${first.seed}: ${first.complaint}`, '', first.story)
    say('', `${passed} passed, ${failed} failed`)
    process.exitCode = failed === 0 ? 0 : 1
  } else
    for (const { name, isOnServer = false } of PLANTED_BUGS) {
      if (isOnServer !== (server !== null)) continue
      const { first } = await runSeeds({ seeds, url, planted: name })
      if (!first) process.exitCode = 1
      say(
        name,
        `    ${first ? `seed ${first.seed}: ${first.complaint}` : `not found in ${seeds.length} histories`}`,
      )
    }
  await server?.stop()
}

// Both tables are in Markdown, with a line as soon as it is measured.
if (values.help) say(USAGE)
else if (values.coverage) {
  say(HEADING)
  for (const kind of values.kind) say(await measureKind(kind, Number(values.walks)))
} else if (values.freshness) {
  say(lines.HEADING)
  for (const name of values.list) say(lines.lineText(name, Number(values.seed)))
} else await simulate()
