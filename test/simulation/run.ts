import process from 'node:process'
import { parseArgs } from 'node:util'
import { patchedBy } from '../helpers/patch.ts'
import { PLANTED_BUGS, type PlantedBug } from './planted.ts'
import { runSeeds } from './shards.ts'

// npm run simulate -- --seeds N [--from S]: lives through these histories, and tells the story of the first that failed.
// npm run simulate -- --planted: looks for a seed that finds each planted bug.

const USAGE = 'npm run simulate -- [--seeds N] [--from S] [--planted]'

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
  },
})
const from = readWhole(values.from, 'from')
const seeds = readWhole(values.seeds, 'seeds')
process.exitCode = values.planted ? await findPlanted(from, seeds) : await runHistories(from, seeds)
