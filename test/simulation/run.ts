import process from 'node:process'
import { parseArgs } from 'node:util'
import { startPostgres } from '../helpers/postgres-server.ts'
import { KINDS } from '../lab/coverage/kinds.ts'
import { measureKinds } from '../lab/coverage/measure-kinds.ts'
import { HEADING, rowText } from '../lab/coverage/table.ts'
import * as lines from '../lab/freshness/lines.ts'
import { PLANTED_BUGS } from './planted.ts'
import { findBug, runSeeds } from './shards.ts'

// npm run simulate -- --seeds N [--from S] [--store postgres]: lives through these histories, and tells the story of the first that failed.
// npm run simulate -- --planted [--store postgres]: looks for a seed that finds each planted bug.
// npm run simulate -- --coverage [--walks N] [--kind NAME]...: measures how often walks over lists that move are wrong.
// npm run simulate -- --freshness [--list NAME]... [--seed N]: measures how old rows of different lists become, beside the best that could be.

const USAGE =
  'npm run simulate -- [--seeds N] [--from S] [--store sqlite|postgres] [--planted | --coverage [--walks N] [--kind NAME]... |\n' +
  '  --freshness [--list NAME]... [--seed N]]'

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
  const bugs = PLANTED_BUGS.filter(({ isOnServer = false }) => isOnServer === (url !== null))
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

/** Prints a table in Markdown, a line for each list as soon as it is measured. */
function tellLists(names: readonly string[], seed: number): number {
  process.stdout.write(`${lines.HEADING}\n`)
  for (const name of names) process.stdout.write(`${lines.lineText(name, seed)}\n`)
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
    walks: { type: 'string', default: '1000' },
    kind: { type: 'string', multiple: true, default: [] },
    freshness: { type: 'boolean', default: false },
    list: { type: 'string', multiple: true, default: [] },
    seed: { type: 'string', default: '1' },
  },
})
const from = readWhole(values.from, 'from')
const seeds = readWhole(values.seeds, 'seeds')
if (values.coverage)
  process.exitCode = await tellCoverage(
    readWhole(values.walks, 'walks'),
    readKinds(values.kind, Object.keys(KINDS)),
  )
else if (values.freshness)
  process.exitCode = tellLists(
    readKinds(values.list, Object.keys(lines.LINES)),
    readWhole(values.seed, 'seed'),
  )
else
  process.exitCode = await onStore(readName(values.store, ['sqlite', 'postgres']), (url) =>
    values.planted ? findPlanted(from, seeds, url) : runHistories(from, seeds, url),
  )
