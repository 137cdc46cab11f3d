import process from 'node:process'
import { parseArgs } from 'node:util'
import { startPostgres } from '../helpers/postgres-server.ts'
import { KINDS } from '../lab/coverage/kinds.ts'
import { measureKinds } from '../lab/coverage/measure-kinds.ts'
import { HEADING, rowText } from '../lab/coverage/table.ts'
import { CHANGES } from '../lab/freshness/changes.ts'
import * as claims from '../lab/freshness/claims-table.ts'
import * as lines from '../lab/freshness/lines.ts'
import { LIVES } from '../lab/freshness/lives.ts'
import { ORDERS } from '../lab/freshness/living-list.ts'
import { measureChanges, measurePolicies, SETTING } from '../lab/freshness/measure-policies.ts'
import { POLICIES } from '../lab/freshness/policies.ts'
import * as freshness from '../lab/freshness/table.ts'
import { play } from '../lab/queue/play.ts'
import { type Size, settings } from '../lab/queue/settings.ts'
import * as queue from '../lab/queue/table.ts'
import { PLANTED_BUGS } from './planted.ts'
import { SERVER_BUGS } from './postgres/planted.ts'
import { findBug, runSeeds } from './shards.ts'

// npm run simulate -- --seeds N [--from S] [--store postgres]: lives through these histories, and tells the story of the first that failed.
// npm run simulate -- --planted [--store postgres]: looks for a seed that finds each planted bug.
// npm run simulate -- --coverage [--walks N] [--kind NAME]...: measures how often walks over lists that move are wrong.
// npm run simulate -- --queue [--workers N] [--organizations N] [--tokens N]: measures how many workers share the lists of a tick.
// npm run simulate -- --freshness [--days N] [--kind NAME]...: measures how old rows become, and what that costs.
// npm run simulate -- --freshness --changes NAME...: the same with an API that is asked for what changed.
// npm run simulate -- --freshness --lists [--list NAME]... [--seed N]: the same of different lists, beside the best that could be.
// npm run simulate -- --claims [--refreshes N] [--kind NAME]...: counts what is claimed and not true, over at least N refreshes of each list.

const USAGE =
  'npm run simulate -- [--seeds N] [--from S] [--store sqlite|postgres] [--planted | --coverage [--walks N] [--kind NAME]... |\n' +
  '  --queue [--workers N] [--organizations N] [--tokens N] |\n' +
  '  --freshness [--days N] [--kind NAME]... [--rows N] [--limit REQUESTS] [--new PER_MINUTE] [--life NAME] [--killed PERCENT]\n' +
  '    [--policy NAME]... [--changes NAME]... | --freshness --lists [--list NAME]... [--seed N] |\n' +
  '  --claims [--refreshes N] [--kind NAME]...]'

/** Makes what histories and planted bugs are looked for with, on a server of their own where `store` says so. */
async function onStore(store: string, task: (url: string | null) => Promise<number>): Promise<number> {
  if (store !== 'postgres') return task(null)
  const server = await startPostgres()
  if (server.missing !== null) throw new Error(server.missing)
  try {
    return await task(server.url)
  } finally {
    await server.stop()
  }
}

async function runHistories(from: number, seeds: number, url: string | null): Promise<number> {
  const { passed, failed, first, counts } = await runSeeds({ from, seeds, url })
  const told = Object.entries(counts).map(([name, count]) => `${count} ${name}`)
  process.stdout.write(`${told.join(', ')}\n\n`)
  if (first) process.stdout.write(`seed ${first.seed}: ${first.complaint}\n\n${first.story}\n\n`)
  process.stdout.write(`${passed} passed, ${failed} failed\n`)
  return failed === 0 ? 0 : 1
}

async function findPlanted(from: number, seeds: number, url: string | null): Promise<number> {
  let missed = 0
  const bugs = url === null ? PLANTED_BUGS : SERVER_BUGS
  for (const planted of bugs) {
    const bug = await findBug(planted.name, { from, seeds, url })
    if (!bug) missed++
    const found = bug ? `seed ${bug.seed}: ${bug.complaint}` : `not found in ${seeds} histories`
    process.stdout.write(`${planted.name}\n    ${found}\n`)
  }
  process.stdout.write(`${bugs.length - missed} found, ${missed} missed\n`)
  return missed === 0 ? 0 : 1
}

/** Prints a table in Markdown, a line for each kind as soon as it is measured. */
async function tellCoverage(walks: number, kinds: readonly string[]): Promise<number> {
  process.stdout.write(`${HEADING}\n`)
  for await (const row of measureKinds({ walks, kinds })) process.stdout.write(`${rowText(row)}\n`)
  return 0
}

/** Prints a table in Markdown for each order of a list, a line for each policy as soon as it is measured. */
function tellFreshness(
  setting: typeof SETTING,
  kinds: readonly string[],
  policies: readonly string[],
  changes: readonly string[],
): number {
  const { rows, limit, arrivals, life, days } = setting
  for (const order of ORDERS.filter((name) => kinds.includes(name))) {
    const about = `${rows} rows, ${limit} requests a minute, ${arrivals} new a minute, ${life}, ${days} days`
    process.stdout.write(`${order}: ${about}\n\n${freshness.HEADING}\n`)
    const list = { ...setting, order }
    for (const row of changes.length > 0 ? measureChanges(list, changes) : measurePolicies(list, policies))
      process.stdout.write(`${freshness.rowText(row)}\n`)
    process.stdout.write('\n')
  }
  return 0
}

/** Prints a table in Markdown, a line for each list as soon as it is measured. */
function tellLists(names: readonly string[], seed: number): number {
  process.stdout.write(`${lines.HEADING}\n`)
  for (const name of names) process.stdout.write(`${lines.lineText(name, seed)}\n`)
  return 0
}

async function tellQueue(size: Size, url: string): Promise<number> {
  process.stdout.write(`${queue.HEADING}\n`)
  for (const setting of settings(size))
    process.stdout.write(`${queue.rowText(await play({ url }, setting))}\n`)
  return 0
}

/** Prints a table in Markdown, a line for each list as soon as it is played. */
function tellClaims(kinds: readonly string[], refreshes: number): number {
  process.stdout.write(`${claims.HEADING}\n`)
  const orders = ORDERS.filter((name) => kinds.includes(name))
  for (const line of claims.claimLines(orders, refreshes)) process.stdout.write(`${line}\n`)
  return 0
}

function readKinds(names: readonly string[], all: readonly string[]): readonly string[] {
  for (const name of names) readName(name, all)
  return names.length > 0 ? names : all
}

function readName(name: string, all: readonly string[]): string {
  if (all.includes(name)) return name
  process.stderr.write(`there is no kind ${name}; there are:\n  ${all.join('\n  ')}\n`)
  return process.exit(2)
}

function readWhole(text: string, name: string): number {
  if (!/^\d{1,9}$/.test(text)) {
    process.stderr.write(`--${name} needs a whole number\n${USAGE}\n`)
    process.exit(2)
  }
  return Number(text)
}

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'sqlite' },
    seeds: { type: 'string', default: '2000' },
    from: { type: 'string', default: '0' },
    planted: { type: 'boolean', default: false },
    coverage: { type: 'boolean', default: false },
    queue: { type: 'boolean', default: false },
    workers: { type: 'string', default: '20' },
    organizations: { type: 'string', default: '10000' },
    tokens: { type: 'string', default: '200' },
    walks: { type: 'string', default: '1000' },
    kind: { type: 'string', multiple: true, default: [] },
    freshness: { type: 'boolean', default: false },
    lists: { type: 'boolean', default: false },
    list: { type: 'string', multiple: true, default: [] },
    seed: { type: 'string', default: '1' },
    days: { type: 'string', default: String(SETTING.days) },
    rows: { type: 'string', default: String(SETTING.rows) },
    limit: { type: 'string', default: String(SETTING.limit) },
    new: { type: 'string', default: String(SETTING.arrivals) },
    life: { type: 'string', default: SETTING.life },
    killed: { type: 'string', default: '0' },
    policy: { type: 'string', multiple: true, default: [] },
    changes: { type: 'string', multiple: true, default: [] },
    claims: { type: 'boolean', default: false },
    refreshes: { type: 'string', default: '10000' },
  },
})
const from = readWhole(values.from, 'from')
const seeds = readWhole(values.seeds, 'seeds')
if (values.coverage)
  process.exitCode = await tellCoverage(
    readWhole(values.walks, 'walks'),
    readKinds(values.kind, Object.keys(KINDS)),
  )
else if (values.queue) {
  const size = {
    workers: readWhole(values.workers, 'workers'),
    organizations: readWhole(values.organizations, 'organizations'),
    tokens: readWhole(values.tokens, 'tokens'),
  }
  process.exitCode = await onStore('postgres', (url) => tellQueue(size, url ?? ''))
} else if (values.freshness && values.lists)
  process.exitCode = tellLists(
    readKinds(values.list, Object.keys(lines.LINES)),
    readWhole(values.seed, 'seed'),
  )
else if (values.freshness)
  process.exitCode = tellFreshness(
    {
      ...SETTING,
      days: readWhole(values.days, 'days'),
      rows: readWhole(values.rows, 'rows'),
      limit: readWhole(values.limit, 'limit'),
      arrivals: readWhole(values.new, 'new'),
      life: readName(values.life, Object.keys(LIVES)),
      killed: readWhole(values.killed, 'killed') / 100,
    },
    readKinds(values.kind, ORDERS),
    readKinds(values.policy, Object.keys(POLICIES)),
    values.changes.length > 0 ? readKinds(values.changes, Object.keys(CHANGES)) : [],
  )
else if (values.claims)
  process.exitCode = tellClaims(readKinds(values.kind, ORDERS), readWhole(values.refreshes, 'refreshes'))
else
  process.exitCode = await onStore(readName(values.store, ['sqlite', 'postgres']), (url) =>
    values.planted ? findPlanted(from, seeds, url) : runHistories(from, seeds, url),
  )
