import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { Client } from 'pg'
import { startPostgres } from '../helpers/postgres-server.ts'
import { createMirror } from './mirrors.ts'
import { startLasting, whileServing } from './processes.ts'
import { type Bench, type Contenders, newFolder, race, rowsOf } from './rounds.ts'
import type { Row } from './table.ts'

// Workers on one PostgreSQL server against one on a file. Each reads by `start` what is due at its start.

const LISTS = 20
const PAGE_SIZE = 25
const WORKERS = [1, 2, 4]

/** What a page costs; without the start of the workers but for their processor time. */
interface PageCosts {
  perSecond: number
  workerMs: number
  serverMs: number
  transactions: number
}

/** A mirror, however it is asked. */
interface Place {
  database?: string
  env: Record<string, string>
  rows<T>(sql: string): Promise<T[]>
  /** Of the server, until now; of a file nothing. */
  costs(): Promise<{ cpuMs: number; transactions: number }>
  remove(): Promise<void>
}

export async function postgres(bench: Bench): Promise<Row[]> {
  const server = await startPostgres()
  if (server.missing !== null) {
    bench.report(`  skipped: ${server.missing}`)
    return []
  }
  const orders = Math.max(PAGE_SIZE, Math.ceil(bench.orders / 100))
  try {
    return await whileServing({ orders, latencyMs: 0 }, async ({ url: api }) => {
      const pages = LISTS * Math.ceil(orders / PAGE_SIZE)
      const measure = (workers: number, place: (folder: string) => Promise<Place>) => () =>
        firstAndAgain(bench, { api, workers, pages, place })
      const contenders: Contenders<Record<string, PageCosts>> = { ours: measure(1, onFile) }
      for (const workers of WORKERS)
        contenders[nameOf(workers)] = measure(workers, () => onServer(server.url))
      const results = await race(bench, contenders)
      return ['new', 'unchanged'].flatMap((kind) => rowsOfKind(kind, pages, results))
    })
  } finally {
    await server.stop()
  }
}

function nameOf(workers: number): string {
  return `PostgreSQL, ${workers} ${workers === 1 ? 'worker' : 'workers'}`
}

/** A file has no server: what that costs is compared between numbers of workers. */
function rowsOfKind(
  kind: string,
  pages: number,
  { ours = [], ...onServers }: Record<string, Record<string, PageCosts>[]>,
): Row[] {
  const what = `${pages} ${kind} pages of ${LISTS} lists`
  const of = (measured: Record<string, PageCosts>) => measured[kind] as PageCosts
  const { [nameOf(1)]: one = [], ...more } = onServers
  const all = { ours, ...onServers }
  const servers = { ours: one, ...more }
  return [
    ...rowsOf('postgres', `${what} into a file`, 'pages/s', all, (each) => of(each).perSecond),
    ...rowsOf('postgres', `${kind} page, worker`, 'ms', all, (each) => of(each).workerMs),
    ...rowsOf('postgres', `${kind} page, server of 1 worker`, 'ms', servers, (each) => of(each).serverMs),
    ...rowsOf(
      'postgres',
      `${kind} page of 1 worker`,
      'transactions',
      servers,
      (each) => of(each).transactions,
    ),
  ]
}

interface Sitting {
  api: string
  workers: number
  pages: number
  place: (folder: string) => Promise<Place>
}

/** Reads all lists for the first time, and once more. */
async function firstAndAgain(bench: Bench, sitting: Sitting): Promise<Record<string, PageCosts>> {
  const folder = newFolder(bench)
  const place = await sitting.place(folder)
  const { database, env } = place
  createMirror({
    program: bench.programs.ours,
    folder,
    url: sitting.api,
    organizations: LISTS,
    concurrency: 16,
    env,
    ...(database === undefined ? {} : { database }),
  })
  try {
    const fresh = await readAll(bench, folder, place, sitting)
    // Read so long ago that all are due.
    await place.rows(`UPDATE sync_walks SET started_at = '${LONG_AGO}'`)
    await place.rows(`UPDATE sync_runs SET started_at = '${LONG_AGO}'`)
    return { new: fresh, unchanged: await readAll(bench, folder, place, sitting) }
  } finally {
    await place.remove()
  }
}

const LONG_AGO = '2001-01-01T00:00:00.000Z'

async function readAll(
  { programs }: Bench,
  folder: string,
  { rows, costs, env }: Place,
  { workers, pages }: Sitting,
): Promise<PageCosts> {
  // There are no tables before the first worker makes them.
  const asked = <T>(sql: string) => rows<T>(sql).catch(() => [])
  const [last] = await asked<{ id: number }>('SELECT max(id) AS id FROM sync_runs')
  const ended = `FROM sync_runs WHERE id > ${last?.id ?? 0} AND status = 'succeeded'`
  const before = await costs()
  const config = path.join(folder, 'admin-mirror.yaml')
  const running = Array.from({ length: workers }, (_, number) =>
    startLasting([programs.ours, 'start', '--config', config], path.join(folder, `cpu-${number}`), env),
  )
  let isOver = false
  while (!isOver && running.every((worker) => worker.isAlive())) {
    await sleep(200)
    const [found] = await asked<{ count: number }>(`SELECT count(*) AS count ${ended}`)
    isOver = Number(found?.count) === LISTS
  }
  const stopped = await Promise.all(running.map((worker) => worker.stop()))
  const after = await costs()
  const times = await rows<{ began: string; over: string }>(
    `SELECT started_at AS began, finished_at AS over ${ended}`,
  )
  const began = Math.min(...times.map((one) => new Date(one.began).getTime()))
  const over = Math.max(...times.map((one) => new Date(one.over).getTime()))
  return {
    perSecond: (pages * 1000) / (over - began),
    workerMs: stopped.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / pages,
    serverMs: (after.cpuMs - before.cpuMs) / pages,
    transactions: (after.transactions - before.transactions) / pages,
  }
}

async function onFile(folder: string): Promise<Place> {
  const file = path.join(folder, 'mirror.db')
  return {
    env: {},
    async rows<T>(sql: string) {
      const connection = new Database(file, { fileMustExist: true })
      try {
        const statement = connection.prepare(sql)
        if (statement.reader) return statement.all() as T[]
        statement.run()
        return []
      } finally {
        connection.close()
      }
    },
    costs: async () => ({ cpuMs: 0, transactions: 0 }),
    remove: async () => fs.rmSync(folder, { recursive: true }),
  }
}

let schemas = 0

async function onServer(url: string): Promise<Place> {
  const { username, password, host, pathname } = new URL(url)
  const schema = `bench_${process.pid}_${++schemas}`
  const client = new Client({ connectionString: url, options: `-c search_path=${schema}` })
  await client.connect()
  // Without a listener, a connection that the server ends would end this process before the reason is told.
  client.on('error', () => {})
  const rows = async <T>(sql: string) => (await client.query(sql)).rows as T[]
  return {
    database: `postgres://${username}@${host}${pathname}?schema=${schema}`,
    env: { PGPASSWORD: decodeURIComponent(password) },
    rows,
    async costs() {
      const [folder] = await rows<{ data_directory: string }>('SHOW data_directory')
      const [counted] = await rows<{ transactions: string }>(
        'SELECT xact_commit + xact_rollback AS transactions FROM pg_stat_database WHERE datname = current_database()',
      )
      return {
        cpuMs: cpuOfServer(folder?.data_directory ?? ''),
        transactions: Number(counted?.transactions),
      }
    },
    async remove() {
      try {
        await rows(`DROP SCHEMA IF EXISTS ${schema}, ${schema}_queue CASCADE`)
      } finally {
        await client.end()
      }
    },
  }
}

/** The processor time of a server on this machine, of the processes that have ended too, in ms. Linux alone tells it. */
function cpuOfServer(dataFolder: string): number {
  const main = Number(fs.readFileSync(path.join(dataFolder, 'postmaster.pid'), 'utf8').split('\n')[0])
  const stats = fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => statOf(Number(pid)) ?? [])
  return stats
    .filter(({ pid, parent }) => pid === main || parent === main)
    .reduce((sum, { ticks }) => sum + (ticks * 1000) / TICKS_A_SECOND, 0)
}

const TICKS_A_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

function statOf(pid: number): { pid: number; parent: number; ticks: number } | null {
  try {
    const text = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name before may hold spaces. Then: state, parent, ...; its own two times, and those of its children that ended.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    return { pid, parent: Number(fields[1]), ticks }
  } catch {
    // It has ended meanwhile.
    return null
  }
}
