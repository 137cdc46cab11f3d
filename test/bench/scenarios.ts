import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BenchMirror, createMirror, type MirrorOptions } from './mirrors.ts'
import { postgres } from './postgres.ts'
import { type Measured, measure, type Serving, whileServing } from './processes.ts'
import { publishing, queries } from './reading.ts'
import { type Bench, type Contenders, grouped, newFolder, race, rowsOf } from './rounds.ts'
import { digits, type Row, ratioOf } from './table.ts'

const BARE_LOOP = fileURLToPath(new URL('./bare-loop.ts', import.meta.url))
const GOT = 'got loop'
const PAGE_SIZE = 25
const LATENCY_MS = 20

/** Each returns its rows. */
export const SCENARIOS: Record<string, (bench: Bench) => Promise<Row[]>> = {
  'first sync': firstSync,
  latency,
  unchanged,
  'many jobs': manyJobs,
  start,
  publishing,
  queries,
  postgres,
}

/** Without latency, so that only the cost of a page counts; and its memory. */
function firstSync(bench: Bench): Promise<Row[]> {
  const { orders } = bench
  return whileServing({ orders, latencyMs: 0 }, async (serving) => {
    const naive = path.join(newFolder(bench), 'naive.db')
    const results = await race(bench, {
      [GOT]: () => bareLoop(bench, serving, orders),
      [`${GOT} + naive upsert`]: () => {
        fs.rmSync(naive, { force: true })
        return bareLoop(bench, serving, orders, naive)
      },
      ...firstSyncs(bench, { url: serving.url }, orders),
    })
    const time = rowsOf('first sync', `${grouped(orders)} orders`, 'ms', results, ({ ms }) => ms)
    const memory = rowsOf('first sync', 'peak of its memory', 'kB', results, ({ peakKb }) => peakKb)
    return [...time, ...memory]
  })
}

/** From a server that takes its time, as all real ones do. */
function latency(bench: Bench): Promise<Row[]> {
  const orders = Math.ceil(bench.orders / 10)
  return whileServing({ orders, latencyMs: LATENCY_MS }, async (serving) => {
    const results = await race(bench, {
      [GOT]: () => bareLoop(bench, serving, orders),
      ...firstSyncs(bench, { url: serving.url }, orders),
    })
    const what = `first sync of ${grouped(orders)} orders, ${LATENCY_MS} ms away`
    return rowsOf('latency', what, 'ms', results, ({ ms }) => ms)
  })
}

/** A sync of a list that the mirror holds already, as most syncs are. */
function unchanged(bench: Bench): Promise<Row[]> {
  const orders = Math.ceil(bench.orders / 2)
  return whileServing({ orders, latencyMs: 0 }, async (serving) => {
    const results = await race(bench, {
      [GOT]: () => bareLoop(bench, serving, orders),
      ...eachProgram(await filledMirrors(bench, serving, orders), (mirror) => mirror.sync(orders)),
    })
    return rowsOf('unchanged', `the same ${grouped(orders)} orders again`, 'ms', results, ({ ms }) => ms)
  })
}

const BUSY = { organizations: 50, concurrency: 16 }

/** Many organizations at the same time, against one that reads alone for about as long. */
function manyJobs(bench: Bench): Promise<Row[]> {
  const { organizations, concurrency } = BUSY
  const each = Math.ceil(bench.orders / 100)
  const alone = Math.ceil((organizations * each) / concurrency)
  return whileServing({ orders: each, latencyMs: LATENCY_MS }, ({ url }) =>
    whileServing({ orders: alone, latencyMs: LATENCY_MS }, async (single) => {
      const one = 'one organization'
      const program = bench.programs.ours
      const lone = createMirror({ url: single.url, concurrency, program, folder: newFolder(bench) })
      const results = await race(bench, {
        ...firstSyncs(bench, { url, organizations, concurrency }, organizations * each),
        [one]: () => firstSyncOf(lone, alone),
      })
      const what = `${organizations} organizations, ${concurrency} requests at once, ${LATENCY_MS} ms away`
      const pages = (name: string) =>
        name === one ? Math.ceil(alone / PAGE_SIZE) : organizations * Math.ceil(each / PAGE_SIZE)
      return rowsOf('many jobs', what, 'pages/s', results, ({ ms }, name) => (pages(name) * 1000) / ms)
    }),
  )
}

/** The time that every command takes before it does anything. */
async function start(bench: Bench): Promise<Row[]> {
  const mirrors = await whileServing({ orders: PAGE_SIZE, latencyMs: 0 }, (serving) =>
    filledMirrors(bench, serving, PAGE_SIZE),
  )
  const often = { ...bench, rounds: 3 * bench.rounds }
  const rows: Row[] = []
  for (const command of ['--version', 'status']) {
    const results = await race(often, {
      'node -e 0': () => measure(['-e', '0']),
      ...eachProgram(mirrors, (mirror) => mirror.run(command)),
    })
    rows.push(...rowsOf('start', command, 'ms', results, ({ ms }) => ms))
  }
  return rows
}

/** A program that reads only a part of the list would win every race, so its count is checked. */
async function bareLoop(bench: Bench, { list }: Serving, orders: number, file?: string): Promise<Measured> {
  const args = file === undefined ? [list] : [list, file]
  const measured = await measure([BARE_LOOP, ...args], { peakIn: bench.folder })
  if (Number(measured.stdout) !== orders)
    throw new Error(`the bare loop read ${measured.stdout.trim()} orders instead of ${orders}`)
  return measured
}

type Lists = Omit<MirrorOptions, 'program' | 'folder'>

function firstSyncs(bench: Bench, lists: Lists, rows: number): Contenders {
  return eachProgram(createMirrors(bench, lists), (mirror) => firstSyncOf(mirror, rows))
}

function firstSyncOf(mirror: BenchMirror, rows: number): Promise<Measured> {
  mirror.empty()
  return mirror.sync(rows)
}

async function filledMirrors(
  bench: Bench,
  { url }: Serving,
  rows: number,
): Promise<Record<string, BenchMirror>> {
  const mirrors = createMirrors(bench, { url })
  for (const mirror of Object.values(mirrors)) await mirror.sync(rows)
  return mirrors
}

/** A mirror for each program. */
function createMirrors(bench: Bench, lists: Lists): Record<string, BenchMirror> {
  const named = Object.entries(bench.programs).map(([name, program]): [string, BenchMirror] => [
    name,
    createMirror({ ...lists, program, folder: newFolder(bench) }),
  ])
  return Object.fromEntries(named)
}

function eachProgram(
  mirrors: Record<string, BenchMirror>,
  run: (mirror: BenchMirror) => Promise<Measured>,
): Contenders {
  return Object.fromEntries(Object.entries(mirrors).map(([name, mirror]) => [name, () => run(mirror)]))
}

/** Runs the scenarios one after another. */
export async function runScenarios(names: readonly string[], bench: Bench): Promise<Row[]> {
  const rows: Row[] = []
  for (const name of names) {
    bench.report(name)
    const found = (await SCENARIOS[name]?.(bench)) ?? []
    // Reported at once, for those who stop it before the table.
    for (const row of found)
      bench.report(`  ${row.what}, against ${row.against}: ${digits(ratioOf(row).median)}`)
    rows.push(...found)
  }
  return rows
}
