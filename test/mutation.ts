import { spawn } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  globSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Instrumenter } from '@stryker-mutator/instrumenter'
import { NOTICED, REACHED, readNoticed, readReached, TRIED } from './mutation-files.ts'
import { createRandom, type Random } from './simulation/random.ts'

// npm run mutation [-- --room NAME]... [--lines N] [--seed N]: plants small defects in N random lines of each room, and counts those that
// no test notices. The same seed takes the same lines of the same source.

/** Tests of rooms whose words and verdicts are mostly seen through a command. Most stories are left out: they take many seconds, for each defect. */
const TOLD = ['test/check', 'test/cli', 'test/config', 'test/listener', 'test/ping', 'test/report']

/** Quick ones beside the store's own: what commands read of a mirror, and do where it is not as it should be; what leaves a list by its filters. */
const USES_OF_STORE = [
  'test/cli/commands/export',
  'test/stories/empty-tables',
  'test/stories/follow-changes',
  'test/stories/mirror-file',
  'test/stories/replaced-views',
  'test/sync/scope',
]

/** The tests that must notice a defect in a room's source: folders, and files without their ending. */
const TESTS: { [room: string]: string[] } = {
  api: ['test/api'],
  sync: ['test/sync'],
  store: ['test/store', ...USES_OF_STORE],
  'store/postgres': ['test/store/postgres', 'test/cli/postgres'],
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
const LEFT_OUT = /\/(help|maintenance-child|child-process|reading-child)\.ts$|\/migrations\//

/** Lines next to each other that are taken together. */
const PIECE = 12

/** Percent of the planted defects that tests notice at least. */
const LEAST = 85

interface Score {
  noticed: number
  missed: number
}

interface Defect {
  id: string
  file: string
  first: number
  last: number
  becomes: string
}

interface Outcome extends Defect {
  isNoticed: boolean
}

/** The copy of the project in which defects are planted. */
const COPY = resolve('.mutation')
const NOT_COPIED = ['.git', '.mutation', 'node_modules', 'build', 'coverage', 'data']

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

const nothing = () => {}
const not = () => false
const SILENT = {
  isTraceEnabled: not,
  isDebugEnabled: not,
  isInfoEnabled: not,
  isWarnEnabled: not,
  isErrorEnabled: not,
  isFatalEnabled: not,
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  fatal: nothing,
}

/** Plants defects in these pieces, in a copy of the project. */
async function plant(pieces: string[]): Promise<Defect[]> {
  rmSync(COPY, { recursive: true, force: true })
  for (const name of readdirSync('.').filter((its) => !NOT_COPIED.includes(its))) {
    cpSync(name, join(COPY, name), { recursive: true })
  }
  symlinkSync(resolve('node_modules'), join(COPY, 'node_modules'))
  const files = [...Map.groupBy(pieces, (piece) => piece.split(':')[0] ?? '')].map(([file, its]) => ({
    name: file,
    content: readFileSync(file, 'utf8'),
    mutate: its.map((piece) => {
      const [first = 0, last = 0] = (piece.split(':')[1] ?? '').split('-').map(Number)
      return { start: { line: first - 1, column: 0 }, end: { line: last - 1, column: 10_000 } }
    }),
  }))
  const instrumenter = new Instrumenter(SILENT)
  const planted = await instrumenter.instrument(files, { ignorers: [], plugins: null, excludedMutations: [] })
  for (const { name, content } of planted.files) writeFileSync(join(COPY, name), content)
  // What loading a module passes is passed before the first test, so that it is told from what tests pass.
  const imports = planted.files.map(({ name }) => `import '../${name}'\n`)
  appendFileSync(join(COPY, 'test/setup.ts'), imports.join(''))
  return planted.mutants
    .filter(({ status }) => status === undefined)
    .map(({ id, fileName, location, replacement }) => {
      return {
        id,
        file: fileName,
        first: location.start.line + 1,
        last: location.end.line + 1,
        becomes: replacement,
      }
    })
}

/** Runs these tests in the copy, again after each defect that lets the run hang or die: it is noticed, and left out from then on. */
async function run(tests: string[], which: 'reach' | 'notice'): Promise<void> {
  const tried = join(COPY, TRIED)
  for (;;) {
    writeFileSync(tried, '')
    const vitest = spawn('npx', ['vitest', 'run', '--config', 'test/mutation.vitest.config.ts'], {
      cwd: COPY,
      env: { ...process.env, MUTATION_TESTS: tests.join(' '), MUTATION_RUN: which, NODE_NO_WARNINGS: '1' },
      stdio: ['ignore', 'ignore', 'inherit'],
      // Its workers end with it, as a group.
      detached: true,
    })
    const end = () => vitest.pid !== undefined && process.kill(-vitest.pid, 'SIGKILL')
    process.once('exit', end)
    const ended = new Promise((settle) => vitest.once('exit', settle)).then(() => 'ended')
    while ((await Promise.race([ended, pause(1000)])) !== 'ended') {
      const [defect, longest] = readFileSync(tried, 'utf8').split(' ')
      if (defect !== '' && Date.now() - statSync(tried).mtimeMs > Number(longest)) end()
    }
    process.off('exit', end)
    const [defect = ''] = readFileSync(tried, 'utf8').split(' ')
    if (defect === '') return
    appendFileSync(join(COPY, NOTICED), `${defect}\n`)
  }
}

/** What these tests notice of the defects that are planted in these pieces. */
async function tryOut(tests: string[], pieces: string[]): Promise<Outcome[]> {
  const defects = await plant(pieces)
  await run(tests, 'reach')
  const reached = readReached(join(COPY, REACHED))
  if (reached.length === 0) throw new Error(`no test ran: ${tests.join(' ')}`)
  for (const { title } of reached.filter(({ passed }) => !passed)) {
    process.stdout.write(`left out, it fails without a defect: ${title}\n`)
  }
  await run(tests, 'notice')
  const noticed = readNoticed(join(COPY, NOTICED))
  const duringTests = new Set(reached.flatMap(({ title, hits }) => (title === null ? [] : Object.keys(hits))))
  const whileLoaded = new Set(reached.flatMap(({ title, hits }) => (title === null ? Object.keys(hits) : [])))
  // What is only passed while modules are loaded would need a process each.
  return defects
    .filter(({ id }) => duringTests.has(id) || !whileLoaded.has(id))
    .map((defect) => ({ ...defect, isNoticed: noticed.has(defect.id) }))
}

function scoreOf(files: string[], outcomes: Outcome[]): Score {
  const its = outcomes.filter(({ file }) => files.includes(file))
  const noticed = its.filter(({ isNoticed }) => isNoticed).length
  return { noticed, missed: its.length - noticed }
}

function textOf({ file, first, last, becomes }: Defect): string {
  const lines = readFileSync(file, 'utf8').split('\n')
  const before = lines.slice(first - 1, last).join('\n')
  return `missed ${file}:${first}\n  ${inOneLine(before)}\n  becomes ${inOneLine(becomes)}\n`
}

function inOneLine(code: string): string {
  return code.replaceAll(/\s+/g, ' ').trim().slice(0, 120)
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
  const pieces = draw(files, Number(values.lines), createRandom(Number(values.seed)))
  return { room, files, pieces, tests: TESTS[room] ?? [] }
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(130))
const outcomes: Outcome[] = []
// Rooms of the same tests are tried together, since these are run once more to see what they reach.
for (const tests of new Set(drawn.map((room) => room.tests))) {
  const pieces = drawn.flatMap((room) => (room.tests === tests ? room.pieces : []))
  outcomes.push(...(await tryOut(tests, pieces)))
}
for (const outcome of outcomes.filter(({ isNoticed }) => !isNoticed)) process.stdout.write(textOf(outcome))
const scores = drawn.map(({ room, files }) => ({ room, ...scoreOf(files, outcomes) }))
rmSync(COPY, { recursive: true, force: true })
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
