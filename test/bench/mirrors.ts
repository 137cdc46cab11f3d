import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { type Measured, measure } from './processes.ts'

export interface MirrorOptions {
  /** `src/bin.js` of a checkout. */
  program: string
  folder: string
  /** The address of the API. */
  url: string
  organizations?: number
  concurrency?: number
  /** Of a mirror on a server: its address. */
  database?: string
  /** Added to the environment of its commands. */
  env?: Record<string, string>
}

/** A mirror with its configuration, in a folder. */
export interface BenchMirror {
  run: (...command: string[]) => Promise<Measured>
  /** Runs `sync` and measures its memory, too. Throws if the mirror does not hold so many rows then. */
  sync: (rows: number) => Promise<Measured>
  /** Deletes the mirror. */
  empty: () => void
}

export function createMirror(options: MirrorOptions): BenchMirror {
  const { program, folder, url, organizations = 1, concurrency = 4, env = {} } = options
  const config = path.join(folder, 'admin-mirror.yaml')
  const file = path.join(folder, 'mirror.db')
  const { database = file } = options
  const settings = {
    api: { baseUrl: url },
    database,
    // 29 February: never while a benchmark runs.
    schedule: '0 0 29 2 *',
    concurrency,
    collections: { establishments: false },
    organizations: Array.from({ length: organizations }, (_, index) => ({
      id: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
      name: `org-${index}`,
      token: `${index}|bench`,
    })),
  }
  // JSON is YAML.
  fs.writeFileSync(config, JSON.stringify(settings))
  return {
    run: (...command) => measure([program, ...command, '--config', config], { env }),
    sync: async (rows) => {
      const measured = await measure([program, 'sync', '--config', config], { peakIn: folder, env })
      const found = countOrders(file)
      if (found !== rows) throw new Error(`the mirror holds ${found} orders instead of ${rows}`)
      return measured
    },
    empty: () => {
      for (const end of ['', '-wal', '-shm', '-owners'])
        fs.rmSync(file + end, { recursive: true, force: true })
    },
  }
}

function countOrders(file: string): number {
  const connection = new Database(file, { readonly: true })
  try {
    return connection.prepare('SELECT count(*) FROM orders').pluck().get() as number
  } finally {
    connection.close()
  }
}
