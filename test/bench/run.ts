import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import Database from 'better-sqlite3'
import { startPostgres } from '../helpers/postgres-server.ts'

// npm run bench: times whole processes in turn, this program, a bare loop of got and another checkout, and prints the ratios of each round.

const USAGE = `npm run bench -- [options]

--orders N       orders of the longest list (100000)
--rounds N       rounds (3)
--only NAME      one scenario; may be repeated: first, away, unchanged, organizations, start, publish, postgres
--against DIR    another checkout of this program, with its modules installed, to compare with
`

const { values } = parseArgs({
  options: {
    orders: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', multiple: true, default: [] },
    against: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(USAGE)
  process.exit()
}
const ORDERS = Number(values.orders)
const ROUNDS = Number(values.rounds)
const HERE = import.meta.dirname
const OURS = path.resolve(HERE, '../..')
const CHECKOUTS: [name: string, folder: string][] = [['ours', OURS]]
if (values.against !== undefined) CHECKOUTS.push([values.against, path.resolve(values.against)])

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-bench-'))
// As root, a PostgreSQL server runs under a user of its own.
fs.chmodSync(folder, 0o755)
const alive = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL')
  fs.rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

interface Figures {
  ms: number
  cpuMs: number
  peakMb: number
  stdout: string
}

/** Runs a Node program in a process of its own. Throws if it does not exit with 0. */
async function measure(args: readonly string[], added: NodeJS.ProcessEnv = {}): Promise<Figures> {
  const file = path.join(folder, 'figures.json')
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, FIGURES: file, ...added }
  const began = performance.now()
  const preload = ['--import', path.join(HERE, 'at-exit.ts')]
  const child = spawn(process.execPath, [...preload, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  alive.add(child)
  const ended = once(child, 'exit') as Promise<[number | null]>
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  const ms = performance.now() - began
  alive.delete(child)
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}:\n${stderr}`)
  return { ms, stdout, ...(JSON.parse(fs.readFileSync(file, 'utf8')) as { cpuMs: number; peakMb: number }) }
}

/** Runs the task beside a server of so many orders. */
async function serving<T>(orders: number, latencyMs: number, task: (url: string) => Promise<T>): Promise<T> {
  const child = fork(path.join(HERE, 'page-server.ts'), [String(orders), String(latencyMs)], { execArgv: [] })
  alive.add(child)
  const [url] = (await once(child, 'message')) as [string]
  try {
    return await task(url)
  } finally {
    child.disconnect()
    await once(child, 'exit')
    alive.delete(child)
  }
}

interface Place {
  organizations?: number
  /** If it is not a file. */
  database?: string
  env?: NodeJS.ProcessEnv
}

/** A mirror of a checkout's own, of the orders at this address. */
function createMirror(checkout: string, url: string, { organizations = 1, database, env }: Place = {}) {
  const own = fs.mkdtempSync(path.join(folder, 'mirror-'))
  const [file, config] = [path.join(own, 'mirror.db'), path.join(own, 'admin-mirror.yaml')]
  const settings = {
    api: { baseUrl: url },
    database: database ?? file,
    concurrency: 16,
    collections: { establishments: false },
    organizations: Array.from({ length: organizations }, (_, index) => ({
      id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
      name: `org-${index}`,
      token: `${index}|bench`,
    })),
  }
  // JSON is YAML.
  fs.writeFileSync(config, JSON.stringify(settings))
  const run = (...command: string[]) =>
    measure([path.join(checkout, 'src/bin.js'), ...command, '--config', config], env)

  /** Throws if the mirror does not hold so many rows then: a program that reads a part of the list would win. */
  async function sync(rows: number): Promise<Figures> {
    const figures = await run('sync', '--quiet')
    const { stdout } = await run('query', 'SELECT count(*) FROM orders', '--format', 'csv')
    const found = Number(stdout.trim().split('\n')[1])
    if (found !== rows) throw new Error(`the mirror holds ${found} orders instead of ${rows}`)
    return figures
  }

  async function syncAnew(rows: number): Promise<Figures> {
    for (const name of fs.readdirSync(own))
      if (name.startsWith('mirror.db')) fs.rmSync(path.join(own, name), { recursive: true })
    return sync(rows)
  }

  return { file, run, sync, syncAnew }
}

type Mirror = ReturnType<typeof createMirror>
type Contenders = Record<string, () => Promise<Figures>>

/** What each checkout does with a mirror of its own, which holds so many rows already. */
async function each(
  url: string,
  synced: number,
  run: (mirror: Mirror) => Promise<Figures>,
  place?: Place,
): Promise<Contenders> {
  const contenders: Contenders = {}
  for (const [name, checkout] of CHECKOUTS) {
    const mirror = createMirror(checkout, url, place)
    if (synced > 0) await mirror.sync(synced)
    contenders[name] = () => run(mirror)
  }
  return contenders
}

const bareLoop = (url: string, ...file: string[]) =>
  measure([path.join(HERE, 'bare-loop.ts'), `${url}/api/v1/admin/orders`, ...file])

/** Runs all contenders once a round, in turn, so that the machine's moods are the same for all; prints ours against each other one. */
async function race(what: string, contenders: Contenders): Promise<void> {
  const results = new Map<string, Figures[]>(Object.keys(contenders).map((name) => [name, []]))
  for (let round = 0; round < ROUNDS; round++)
    for (const [name, run] of Object.entries(contenders)) results.get(name)?.push(await run())
  const ours = results.get('ours') ?? []
  results.delete('ours')
  for (const [name, theirs] of results) {
    const cells = (['ms', 'cpuMs', 'peakMb'] as const).map((figure) => {
      const ratios = ours.map((one, round) => one[figure] / (theirs[round]?.[figure] ?? Number.NaN))
      const [mine, other] = [ours, theirs].map((all) => middle(all.map((one) => one[figure])).toFixed(0))
      return `${mine} / ${other} = ${middle(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)})`
    })
    process.stdout.write(`| ${what} | ${name} | ${cells.join(' | ')} |\n`)
  }
}

function middle(figures: number[]): number {
  return figures.toSorted((one, other) => one - other)[Math.floor(figures.length / 2)] ?? Number.NaN
}

/** A part of the longest list. */
const part = (of: number) => Math.ceil(ORDERS / of)

const SCENARIOS: Record<string, () => Promise<void>> = {
  first: () =>
    serving(ORDERS, 0, async (url) => {
      const naive = path.join(folder, 'naive.db')
      await race(`first sync of ${ORDERS} orders`, {
        ...(await each(url, 0, (mirror) => mirror.syncAnew(ORDERS))),
        'got loop': () => bareLoop(url),
        'got loop + naive upsert': () => {
          fs.rmSync(naive, { force: true })
          return bareLoop(url, naive)
        },
      })
    }),

  away: () =>
    serving(part(10), 20, async (url) =>
      race(`first sync of ${part(10)} orders, 20 ms away`, {
        ...(await each(url, 0, (mirror) => mirror.syncAnew(part(10)))),
        'got loop': () => bareLoop(url),
      }),
    ),

  unchanged: () =>
    serving(part(2), 0, async (url) =>
      race(`the same ${part(2)} orders again`, {
        ...(await each(url, part(2), (mirror) => mirror.sync(part(2)))),
        'got loop': () => bareLoop(url),
      }),
    ),

  organizations: () =>
    serving(part(100), 20, async (url) =>
      race(`50 organizations of ${part(100)} orders, 16 requests at once, 20 ms away`, {
        ...(await each(url, 0, (mirror) => mirror.syncAnew(50 * part(100)), { organizations: 50 })),
        'got loop of one': () => bareLoop(url),
      }),
    ),

  start: () =>
    serving(25, 0, async (url) => {
      for (const command of ['--version', 'status'])
        await race(command, {
          ...(await each(url, 25, (mirror) => mirror.run(command))),
          'node -e 0': () => measure(['-e', '0']),
        })
    }),

  publish: () =>
    serving(ORDERS, 0, async (url) => {
      let file = ''
      await race(`snapshot of ${ORDERS} orders`, {
        ...(await each(url, ORDERS, (mirror) => {
          ;({ file } = mirror)
          fs.rmSync(`${file}.copy`, { force: true })
          return mirror.run('snapshot', `${file}.copy`)
        })),
        async 'VACUUM INTO'() {
          fs.rmSync(`${folder}/vacuum.db`, { force: true })
          const began = performance.now()
          const connection = new Database(file)
          connection.prepare('VACUUM INTO ?').run(`${folder}/vacuum.db`)
          connection.close()
          return { ms: performance.now() - began, cpuMs: Number.NaN, peakMb: Number.NaN, stdout: '' }
        },
      })
    }),

  async postgres() {
    const server = await startPostgres()
    if (server.missing !== null) throw new Error(server.missing)
    const { username, password, host, pathname } = new URL(server.url)
    const env = { PGPASSWORD: decodeURIComponent(password) }
    const [organizations, orders] = [20, Math.max(25, part(100))]
    let schemas = 0
    const syncTo = (checkout: string, url: string, place: Place = {}) =>
      createMirror(checkout, url, { organizations, ...place }).sync(organizations * orders)
    const newPlace = () => ({
      database: `postgres://${username}@${host}${pathname}?schema=bench_${++schemas}`,
      env,
    })
    try {
      await serving(orders, 0, (url) =>
        race(`${organizations} organizations of ${orders} orders to a server`, {
          ...Object.fromEntries(
            CHECKOUTS.map(([name, checkout]) => [name, () => syncTo(checkout, url, newPlace())]),
          ),
          'into a file': () => syncTo(OURS, url),
        }),
      )
    } finally {
      await server.stop()
    }
  },
}

const names = values.only.length > 0 ? values.only : Object.keys(SCENARIOS)
process.stdout
  .write(`${os.cpus()[0]?.model}, ${os.availableParallelism()} cores, Node ${process.versions.node}

| measured | ours against | ms | ms of processor | MB at most |
| --- | --- | --- | --- | --- |
`)
for (const name of names) {
  const scenario = SCENARIOS[name]
  if (!scenario) throw new Error(`there is no scenario ${name}\n\n${USAGE}`)
  await scenario()
}
