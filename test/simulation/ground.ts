import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { openForWriting } from '../../src/store/sqlite/file/open.ts'
import { asOnlooker } from './process.ts'

/** Where histories have their files: one folder for all of them, since making tables costs more than copying them. */
export interface Ground {
  /** An empty mirror in a folder of its own. */
  lay(seed: number): { folder: string; file: string }
  clear(folder: string): void
  remove(): void
}

const MEMORY_DISK = '/dev/shm'

export function createGround(): Ground {
  const base = fs.existsSync(MEMORY_DISK) ? MEMORY_DISK : os.tmpdir()
  const root = fs.mkdtempSync(path.join(base, 'admin-mirror-simulation-'))
  const template = path.join(root, 'template.db')
  asOnlooker(() => openForWriting(template).close())
  return {
    lay(seed) {
      const folder = path.join(root, `history-${seed}`)
      fs.mkdirSync(folder)
      const file = path.join(folder, 'mirror.db')
      fs.copyFileSync(template, file)
      return { folder, file }
    },
    clear: (folder) => fs.rmSync(folder, { recursive: true, force: true }),
    remove: () => fs.rmSync(root, { recursive: true, force: true }),
  }
}
