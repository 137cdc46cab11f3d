import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { openForWriting } from '../../src/mirror/database.ts'
import { tempFolder } from '../helpers/temp-folder.ts'

describe('bringing the tables up to date', () => {
  it('leaves nothing of a step that fails', () => {
    const file = path.join(tempFolder(), 'mirror.db')
    const begun = new Database(file)
    begun.pragma('application_id = 0x61646d72')
    // One of the last tables of the first step is in the way.
    begun.exec('CREATE TABLE sync_gates (scope TEXT)').close()

    expect(() => openForWriting(file)).toThrow(MirrorError)

    const after = new Database(file, { readonly: true })
    expect(after.prepare('SELECT name FROM sqlite_schema').pluck().all()).toEqual(['sync_gates'])
    expect(after.pragma('user_version', { simple: true })).toBe(0)
    after.close()
  })

  it('can be done once what was in the way is gone', () => {
    const file = path.join(tempFolder(), 'mirror.db')
    const begun = new Database(file)
    begun.pragma('application_id = 0x61646d72')
    begun.exec('CREATE TABLE sync_gates (scope TEXT)')
    expect(() => openForWriting(file)).toThrow(MirrorError)
    begun.exec('DROP TABLE sync_gates').close()

    const connection = openForWriting(file)

    expect(connection.prepare('SELECT count(*) FROM sync_gates').pluck().get()).toBe(0)
    connection.close()
  })
})
