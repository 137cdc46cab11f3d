import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { createRandom, type Random } from './simulation/random.ts'

// npm run mutation [-- --room NAME]... [--lines N] [--seed N]: plants small defects in N random lines of each room, and counts those that
// no test notices. The same seed takes the same lines of the same source.

/** Tests of rooms whose words and verdicts are mostly seen through a command. */
const TOLD = [
  'test/check',
  'test/cli',
  'test/config',
  'test/listener',
  'test/ping',
  'test/report',
  'test/stories',
]

/** The tests that must notice a defect in a room's source. */
const TESTS: { [room: string]: string[] } = {
  api: ['test/api'],
  sync: ['test/sync'],
  store: ['test/store'],
  'store/postgres': ['test/store/postgres', 'test/cli/postgres', 'test/stories/postgres'],
  schedule: ['test/schedule'],
  json: ['test/json', 'test/api'],
  config: TOLD,
  ping: TOLD,
  report: TOLD,
  check: TOLD,
  listener: TOLD,
  cli: TOLD,
}

/** Texts alone, or what runs in threads and processes of its own, where no defect is switched on. */
const LEFT_OUT = /\/(help|completion|maintenance-child|child-process|reading-child)\.ts$|\/migrations\//

/** Lines next to each other that are taken together. */
const PIECE = 12

/** Percent of the planted defects that tests notice at least. */
const LEAST = 85

interface Score {
  noticed: number
  missed: number
}

interface Outcome {
  file: string
  status: string
}

interface Report {
  files: { [file: string]: { mutants: Array<{ status: string }> } }
}

/** The files of a room, those of a room within it left out. */
function sourceOf(room: string): string[] {
  const within = Object.keys(TESTS).filter((other) => other.startsWith(`${room}/`))
  return globSync(`src/${room}/**/*.ts`)
    .filter((file) => !LEFT_OUT.test(file) && !within.some((other) => file.startsWith(`src/${other}/`)))
    .toSorted()
}

/** Pieces of files, `file:first-last`, of about `lines` lines together; all files where they have no more. */
function draw(files: string[], lines: number, random: Random): string[] {
  const pieces = files.flatMap((file) => {
    const length = readFileSync(file, 'utf8').split('\n').length
    return Array.from({ length: Math.ceil(length / PIECE) }, (_, at) => {
      return `${file}:${at * PIECE + 1}-${Math.min(length, (at + 1) * PIECE)}`
    })
  })
  const drawn: string[] = []
  while (drawn.length * PIECE < lines && pieces.length > 0) {
    drawn.push(...pieces.splice(random.whole(0, pieces.length - 1), 1))
  }
  return drawn
}

/** What became of the defects planted in these pieces, by file. */
function plant(tests: string[], pieces: string[]): Outcome[] {
  const { status } = spawnSync(
    'npx',
    ['stryker', 'run', 'test/stryker.config.json', '--mutate', pieces.join(',')],
    {
      env: { ...process.env, MUTATION_TESTS: tests.join(' ') },
      stdio: 'inherit',
    },
  )
  if (status !== 0) throw new Error(`Stryker ended with ${status}`)
  const { files } = JSON.parse(readFileSync('.stryker-tmp/report/mutation.json', 'utf8')) as Report
  return Object.entries(files).flatMap(([file, { mutants }]) =>
    mutants.map((mutant) => ({ file, status: mutant.status })),
  )
}

function scoreOf(files: string[], outcomes: Outcome[]): Score {
  const ends = outcomes.filter(({ file }) => files.includes(file)).map(({ status }) => status)
  const count = (...statuses: string[]) => ends.filter((end) => statuses.includes(end)).length
  return { noticed: count('Killed', 'Timeout'), missed: count('Survived', 'NoCoverage') }
}

function rowText(name: string, { noticed, missed }: Score): string {
  const all = noticed + missed
  return `${name.padEnd(16)} ${String(noticed).padStart(6)} of ${String(all).padStart(6)}  ${percentOf({ noticed, missed }).toFixed(1)} %\n`
}

function percentOf({ noticed, missed }: Score): number {
  return noticed + missed === 0 ? 100 : (100 * noticed) / (noticed + missed)
}

const { values } = parseArgs({
  options: {
    room: { type: 'string', multiple: true, default: Object.keys(TESTS) },
    lines: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(Math.floor(Date.now() / 86_400_000)) },
  },
})
const drawn = values.room.map((room) => {
  const files = sourceOf(room)
  return {
    room,
    files,
    tests: TESTS[room] ?? [],
    pieces: draw(files, Number(values.lines), createRandom(Number(values.seed))),
  }
})
// One run for all rooms of the same tests: Stryker first runs them all to see which reach what.
const outcomes = [...new Set(drawn.map(({ tests }) => tests))].flatMap((tests) => {
  const pieces = drawn.filter((room) => room.tests === tests).flatMap((room) => room.pieces)
  return plant(tests, pieces)
})
const scores = drawn.map(({ room, files }) => ({ room, ...scoreOf(files, outcomes) }))
const total = {
  noticed: scores.reduce((sum, { noticed }) => sum + noticed, 0),
  missed: scores.reduce((sum, { missed }) => sum + missed, 0),
}
process.stdout.write(
  `\n${values.lines} lines of each room, --seed ${values.seed}: defects that tests noticed\n`,
)
for (const { room, ...score } of scores) process.stdout.write(rowText(room, score))
process.stdout.write(rowText('all', total))
process.exitCode = percentOf(total) < LEAST ? 1 : 0
