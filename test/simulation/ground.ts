import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import type { Config } from '../../src/config/config.ts'
import { openForWriting } from '../../src/store/sqlite/open.ts'
import type { VirtualClock, WallClock } from './clock.ts'
import type { History } from './history.ts'
import { type MirrorReader, type Row, readerOf } from './oracle/context.ts'
import { asOnlooker, type SimulatedProcess } from './process.ts'
import { watchSqlite } from './sqlite-steps.ts'
import type { World } from './world.ts'

/** The mirror of one history. */
export interface Plot {
  folder: string
  config: Pick<Config, 'database' | 'postgres'>
  reader: MirrorReader
  /** How the clock waits for what leaves the process; undefined: nothing does. */
  settle?: VirtualClock['settle']
  watch(
    world: World,
    clocks: { clock: VirtualClock; wall: WallClock },
    onCommit: (process: SimulatedProcess) => void,
  ): void
  clear(): void
}

/** Where histories have their mirrors: one place for all of them, since making tables costs more than copying them. */
export interface Ground {
  /** What is to happen. */
  historyOf(seed: number): History
  /** An empty mirror. */
  lay(seed: number): Promise<Plot>
  remove(): void
}

const MEMORY_DISK = '/dev/shm'

/** A folder of its own for each mirror, which is a file. */
export function createGround(historyOf: Ground['historyOf']): Ground {
  const base = fs.existsSync(MEMORY_DISK) ? MEMORY_DISK : os.tmpdir()
  const root = fs.mkdtempSync(path.join(base, 'admin-mirror-simulation-'))
  const template = path.join(root, 'template.db')
  asOnlooker(() => openForWriting(template).close())
  return {
    historyOf,
    async lay(seed) {
      const folder = path.join(root, `history-${seed}`)
      fs.mkdirSync(folder)
      const file = path.join(folder, 'mirror.db')
      fs.copyFileSync(template, file)
      const connection = asOnlooker(() => new Database(file, { readonly: true }))
      return {
        folder,
        config: { database: file, postgres: null },
        reader: readerOn(connection),
        watch: (world, _clocks, onCommit) =>
          watchSqlite({ isLocked: ({ name }) => name === file && world.isLocked(), onCommit }),
        clear() {
          asOnlooker(() => connection.close())
          fs.rmSync(folder, { recursive: true, force: true })
        },
      }
    },
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
