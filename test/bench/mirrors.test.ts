import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { tempFolder } from '../helpers/temp-folder.ts'
import { framesOf } from './mirrors.ts'

it.each([0, 1, 50])(
  'all %i frames of the log are counted, however often somebody would move them',
  async (count) => {
    const file = path.join(tempFolder(), 'any.db')
    const made = new Database(file)
    made.pragma('journal_mode = WAL')
    made.exec('CREATE TABLE numbers (number INTEGER)')
    made.close()

    const frames = await framesOf(file, async () => {
      const writer = new Database(file, { timeout: 0 })
      // A small table on one page: each commit writes that page alone.
      for (let number = 0; number < count; number++) {
        writer.exec(number === 0 ? 'INSERT INTO numbers VALUES (0)' : `UPDATE numbers SET number = ${number}`)
        if (number % 20 === 0) writer.pragma('wal_checkpoint(TRUNCATE)')
      }
      writer.close()
    })

    expect(frames).toBe(count)
  },
)
