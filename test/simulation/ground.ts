import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import type { Config } from '../../src/config/config.ts'
import { openForWriting } from '../../src/store/sqlite/open.ts'
import type { VirtualClock } from './clock.ts'
import { type History, makeHistory } from './history.ts'
import { type MirrorReader, readerOf, type Row } from './oracle/context.ts'
import { asOnlooker, type SimulatedProcess } from './process.ts'
import { watchSqlite } from './sqlite-steps.ts'

/** What a mirror is told of its history, and tells. */
export interface Surroundings {
  clock: VirtualClock
  /** Whether somebody outside holds the mirror's write lock at this moment, or its server is away. */
  isLocked(): boolean
  /** Of a transaction that may have changed what readers of lists see: most change nothing at all. */
  onCommit(process: SimulatedProcess): void
}

export type Ground = ReturnType<typeof createGround>

const MEMORY_DISK = '/dev/shm'

/** Where histories have their mirrors, each a file in a folder of its own. Making tables costs more than copying them. */
export function createGround() {
  const base = fs.existsSync(MEMORY_DISK) ? MEMORY_DISK : os.tmpdir()
  const root = fs.mkdtempSync(path.join(base, 'admin-mirror-simulation-'))
  const template = path.join(root, 'template.db')
  asOnlooker(() => openForWriting(template).close())
  return {
    /** What is to happen. */
    historyOf: (seed: number): History => makeHistory(seed),
    /** An empty mirror. */
    async lay(seed: number, { isLocked, onCommit }: Surroundings) {
      const folder = path.join(root, `history-${seed}`)
      fs.mkdirSync(folder)
      const file = path.join(folder, 'mirror.db')
      fs.copyFileSync(template, file)
      const connection = asOnlooker(() => new Database(file, { readonly: true }))
      watchSqlite({ isLocked: ({ name }) => name === file && isLocked(), onCommit })
      const config: Pick<Config, 'database' | 'postgres'> = { database: file, postgres: null }
      return {
        folder,
        config,
        reader: readerOn(connection),
        clear() {
          asOnlooker(() => connection.close())
          fs.rmSync(folder, { recursive: true, force: true })
        },
      }
    },
    /** Lets everything happen that can happen without time passing. SQLite answers at once, and nothing else leaves the process. */
    settle: () => new Promise<void>((resolve) => setImmediate(resolve)),
    remove: () => fs.rmSync(root, { recursive: true, force: true }),
  }
}

/** The mirror through a connection of its own. */
function readerOn(connection: Database.Database): MirrorReader {
  const statements = new Map<string, Database.Statement>()
  return readerOf((sql, ...values) =>
    asOnlooker(() => {
      // SQLite compiles a statement again for each value of a bare parameter, which takes ten times as long as the query.
      const statement = statements.get(sql) ?? connection.prepare(sql.replaceAll('?', '+?'))
      statements.set(sql, statement)
      return statement.all(...values) as Row[]
    }),
  )
}
