import process from 'node:process'
import { parseArgs } from 'node:util'
import { patchedBy } from '../helpers/patch.ts'
import { KINDS } from './coverage/kinds.ts'
import { measureKinds } from './coverage/measure-kinds.ts'
import { HEADING, rowText } from './coverage/table.ts'
import { PLANTED_BUGS, type PlantedBug } from './planted.ts'
import { runSeeds } from './shards.ts'

// npm run simulate -- --seeds N [--from S]: lives through these histories, and tells the story of the first that failed.
// npm run simulate -- --planted: looks for a seed that finds each planted bug.
// npm run simulate -- --coverage [--walks N] [--kind NAME]...: measures how often walks over lists that move are wrong.

const USAGE =
  'npm run simulate -- [--seeds N] [--from S] [--planted | --coverage [--walks N] [--kind NAME]...]'

async function runHistories(from: number, seeds: number): Promise<number> {
  const { passed, failed, first, counts } = await runSeeds({ from, seeds })
  const told = Object.entries(counts).map(([name, count]) => `${count} ${name}`)
  process.stdout.write(`${told.join(', ')}\n\n`)
  if (first) process.stdout.write(`seed ${first.seed}: ${first.complaint}\n\n${first.story}\n\n`)
  process.stdout.write(`${passed} passed, ${failed} failed\n`)
  return failed === 0 ? 0 : 1
}

async function findPlanted(from: number, seeds: number): Promise<number> {
  let missed = 0
  for (const planted of PLANTED_BUGS) {
    const first = await findBug(planted, from, seeds)
    if (!first) missed++
    const found = first ? `seed ${first.seed}: ${first.complaint}` : `not found in ${seeds} histories`
    process.stdout.write(`${planted.name}\n    ${found}\n`)
  }
  process.stdout.write(`${PLANTED_BUGS.length - missed} found, ${missed} missed\n`)
  return missed === 0 ? 0 : 1
}

async function findBug({ patches }: PlantedBug, from: number, seeds: number) {
  const { first } = await runSeeds({ from, seeds, env: patchedBy(...patches), stopAtFirst: true })
  return first
}

/** Prints a table in Markdown, a line for each kind as soon as it is measured. */
async function tellCoverage(walks: number, kinds: readonly string[]): Promise<number> {
  process.stdout.write(`${HEADING}\n`)
  for await (const row of measureKinds({ walks, kinds })) process.stdout.write(`${rowText(row)}\n`)
  return 0
}

function readKinds(names: readonly string[]): readonly string[] {
  const unknown = names.find((name) => !KINDS[name])
  if (unknown !== undefined) {
    process.stderr.write(`there is no kind ${unknown}; there are:\n  ${Object.keys(KINDS).join('\n  ')}\n`)
    process.exit(2)
  }
  return names.length > 0 ? names : Object.keys(KINDS)
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
    seeds: { type: 'string', default: '2000' },
    from: { type: 'string', default: '0' },
    planted: { type: 'boolean', default: false },
    coverage: { type: 'boolean', default: false },
    walks: { type: 'string', default: '1000' },
    kind: { type: 'string', multiple: true, default: [] },
  },
})
const from = readWhole(values.from, 'from')
const seeds = readWhole(values.seeds, 'seeds')
if (values.coverage)
  process.exitCode = await tellCoverage(readWhole(values.walks, 'walks'), readKinds(values.kind))
else process.exitCode = values.planted ? await findPlanted(from, seeds) : await runHistories(from, seeds)
