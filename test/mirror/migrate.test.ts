import fs from 'node:fs'
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

const MIGRATIONS = path.resolve(import.meta.dirname, '../../src/mirror/migrations')

/** A mirror as it was before its walks knew what they expect to have missed, with this in it. */
function olderMirror(sql: string): string {
  const file = path.join(tempFolder(), 'mirror.db')
  const older = new Database(file)
  older.pragma('application_id = 0x61646d72')
  for (const step of ['0001.sql', '0002.sql', '0003.sql', '0004.sql'])
    older.exec(fs.readFileSync(path.join(MIGRATIONS, step), 'utf8'))
  older.pragma('user_version = 4')
  older.exec(sql).close()
  return file
}

describe('a mirror whose walks were made before they knew what they expect to have missed', () => {
  const walk = (status: string, coverage: string) => `
    INSERT INTO sync_walks (
      organization_id, collection, kind, filters, status, coverage, passes, started_at, updated_at, origin, path, first_page, account
    ) VALUES ('1', 'orders', 'full', '{}', '${status}', ${coverage}, 1, 't', 't', 'sync', '/orders', 1, '{"ask":null,"account":{"moved":true}}');
  `

  it('does not know it of these, and goes on with the open one', () => {
    const file = olderMirror(`
      INSERT INTO organizations (id, name, configured) VALUES ('1', 'acme', 1);
      INSERT INTO sync_jobs (organization_id, collection, configured) VALUES ('1', 'orders', 1);
      ${walk('complete', "'repaired'")} ${walk('open', 'NULL')}
    `)

    const connection = openForWriting(file)

    expect(connection.prepare('SELECT coverage, expected_missed FROM sync_status').all()).toEqual([
      { coverage: 'repaired', expected_missed: null },
    ])
    expect(connection.prepare('SELECT status, account FROM sync_walks ORDER BY id').all()).toEqual([
      { status: 'complete', account: '{"ask":null,"account":{"moved":true}}' },
      { status: 'open', account: expect.stringContaining('"movement":null,"totals":{"answers":0') },
    ])
    connection.close()
  })
})
