import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { Config } from '../../src/config/config.ts'
import { openForWriting } from '../../src/store/sqlite/open.ts'
import type { VirtualClock, WallClock } from './clock.ts'
import type { History } from './history.ts'
import { type MirrorReader, openMirrorReader } from './oracle/context.ts'
import { asOnlooker, type SimulatedProcess } from './process.ts'
import { watchSqlite } from './sqlite-steps.ts'
import type { World } from './world.ts'

/** The mirror of one history. */
export interface Plot {
  folder: string
  config: Pick<Config, 'database' | 'postgres'>
  openReader(): MirrorReader
  /** How the clock waits for what leaves the process; undefined: nothing does. */
  settle?: VirtualClock['settle']
  watch(
    world: World,
    clocks: { clock: VirtualClock; wall: WallClock },
    onCommit: (process: SimulatedProcess) => void,
  ): void
}

/** Where histories have their mirrors: one place for all of them, since making tables costs more than copying them. */
export interface Ground {
  /** What is to happen. */
  historyOf(seed: number): History
  /** An empty mirror. */
  lay(seed: number): Promise<Plot>
  clear(plot: Plot): void
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
      return {
        folder,
        config: { database: file, postgres: null },
        openReader: () => openMirrorReader(file),
        watch: (world, _clocks, onCommit) =>
          watchSqlite({ isLocked: (connection) => connection.name === file && world.isLocked(), onCommit }),
      }
    },
    clear: ({ folder }) => fs.rmSync(folder, { recursive: true, force: true }),
    remove: () => fs.rmSync(root, { recursive: true, force: true }),
  }
}
