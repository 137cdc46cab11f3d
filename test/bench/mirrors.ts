import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { BIN, type Measured, type MeasureOptions, measure } from './processes.ts'

export interface MirrorOptions {
  /** Empty, or with an old mirror in it. */
  folder: string
  /** The address of the API. */
  url: string
  organizations?: number
  concurrency?: number
}

/** A mirror with its configuration, in a folder. */
export interface BenchMirror {
  file: string
  /** Types a command. */
  run: (command: readonly string[], options?: MeasureOptions) => Promise<Measured>
  /** `sync`, which must leave so many rows. */
  sync: (rows: number, options?: MeasureOptions) => Promise<Measured>
  /** Deletes the mirror, so that the next sync makes it anew. */
  empty: () => void
}

/** Never while a benchmark runs: 29 February. */
const RARELY = '0 0 29 2 *'

export function createMirror({
  folder,
  url,
  organizations = 1,
  concurrency = 4,
}: MirrorOptions): BenchMirror {
  const config = path.join(folder, 'admin-mirror.yaml')
  const file = path.join(folder, 'mirror.db')
  const settings = {
    api: { baseUrl: url },
    database: file,
    schedule: RARELY,
    concurrency,
    collections: { establishments: false },
    organizations: Array.from({ length: organizations }, (_, index) => organization(index + 1)),
  }
  // JSON is YAML, too.
  fs.writeFileSync(config, JSON.stringify(settings))
  const run: BenchMirror['run'] = (command, options) =>
    measure([BIN, ...command, '--config', config], options)
  return {
    file,
    run,
    sync: async (rows, options) => {
      const measured = await run(['sync'], options)
      const there = rowsOf(file)
      if (there !== rows) throw new Error(`the mirror holds ${there} orders instead of ${rows}`)
      return measured
    },
    empty: () => {
      for (const end of ['', '-wal', '-shm', '-owners'])
        fs.rmSync(file + end, { recursive: true, force: true })
    },
  }
}

function organization(number: number) {
  const id = `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
  return { id, name: `org-${number}`, token: `${number}|bench` }
}

function rowsOf(file: string): number {
  const connection = new Database(file, { readonly: true })
  try {
    return connection.prepare('SELECT count(*) FROM orders').pluck().get() as number
  } finally {
    connection.close()
  }
}

/**
 * How many frames `task` adds to the write-ahead log of a database that nobody else uses, whoever writes them. A reader
 * holds the whole log back meanwhile, so that it is as long as all that was written.
 */
export async function framesOf(file: string, task: () => Promise<unknown>): Promise<number> {
  const reader = new Database(file, { fileMustExist: true })
  try {
    const pageSize = reader.pragma('page_size', { simple: true }) as number
    reader.exec('BEGIN; SELECT count(*) FROM sqlite_schema')
    await task()
    const bytes = fs.statSync(`${file}-wal`).size
    return Math.max(0, bytes - LOG_HEADER) / (pageSize + FRAME_HEADER)
  } finally {
    reader.close()
  }
}

const LOG_HEADER = 32
const FRAME_HEADER = 24
