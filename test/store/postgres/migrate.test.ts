import fs from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { LATEST_VERSION, migrate } from '../../../src/store/postgres/migrations/migrate.ts'
import { connectServer } from '../../../src/store/postgres/server/server.ts'
import { newSchema, openReader, startPostgres } from '../../helpers/postgres.ts'
import { afterRealTime } from '../../helpers/real-time.ts'

const FOLDER = path.resolve(import.meta.dirname, '../../../src/store/postgres/migrations')

const server = await startPostgres()
afterAll(() => server.stop())
if (server.missing !== null) console.warn(server.missing)

const canRead = (role: string) => `has_table_privilege('${role}', 'sync_columns', 'SELECT')`

/** A schema as a released version made it. */
async function openSchema(steps: readonly string[]) {
  const address = newSchema(server)
  const { signal } = new AbortController()
  const own = await connectServer(address, {
    now: Date.now,
    sleep: async () => {},
    after: afterRealTime,
    signal,
  })
  onTestFinished(() => own.close())
  await own.transaction(async (sql) => {
    await sql.exec(`CREATE SCHEMA ${address.schema}`)
    for (const step of steps) await sql.exec(fs.readFileSync(path.join(FOLDER, step), 'utf8'))
    await sql.rows("INSERT INTO sync_settings (name, value) VALUES ('version', $1)", [String(steps.length)])
  })
  return { address, own }
}

describe.skipIf(server.missing !== null)('a schema of an older version', { timeout: 60_000 }, () => {
  it('lets the requests of older workers pass while somebody reads its lists for long', async () => {
    const { address, own } = await openSchema([
      '0001-tables-of-the-interface.sql',
      '0002-tokens-of-organizations.sql',
    ])
    const [reader, rows] = [await openReader(address), await openReader(address)]
    await reader('BEGIN')
    await reader('SELECT 1 FROM sync_jobs')
    const migrated = migrate(own)
    const lockOf = (table: string) =>
      `SELECT granted FROM pg_locks WHERE relation = '${address.schema}.${table}'::regclass AND mode = 'AccessExclusiveLock'`
    await expect.poll(() => rows(lockOf('sync_jobs'))).toEqual([{ granted: false }])

    expect(await rows(lockOf('sync_gates'))).toEqual([])
    await reader('COMMIT')
    await migrated
    expect(await rows("SELECT value FROM sync_settings WHERE name = 'version'")).toEqual([
      { value: String(LATEST_VERSION) },
    ])
  })

  it('lets those read sync_columns as a view who could read it as a table, and nobody else', async () => {
    const { address, own } = await openSchema([
      '0001-tables-of-the-interface.sql',
      '0002-tokens-of-organizations.sql',
      '0003-refreshes-of-many-workers.sql',
    ])
    const rows = await openReader(address)
    const [reads, may] = [`reads_${address.schema}`, `may_not_${address.schema}`]
    onTestFinished(async () => {
      await rows(`DROP OWNED BY ${reads}, ${may}; DROP ROLE ${reads}; DROP ROLE ${may}`)
    })
    await rows(`
      CREATE ROLE ${reads}; CREATE ROLE ${may};
      GRANT SELECT ON sync_columns TO ${reads};
      ALTER DEFAULT PRIVILEGES IN SCHEMA ${address.schema} GRANT SELECT ON TABLES TO ${may};
      CREATE VIEW mine AS SELECT "column" FROM sync_columns;
      INSERT INTO sync_columns (collection, "column", path, type, role, first_seen_at, last_changed_at)
      VALUES ('orders', 'a', '$.a', 'TEXT', 'value', now(), now())
    `)

    await migrate(own)

    expect(await rows(`SELECT ${canRead(reads)} AS reads, ${canRead(may)} AS may`)).toEqual([
      { reads: true, may: false },
    ])
    expect(await rows('SELECT "column" FROM mine')).toEqual([{ column: 'a' }])
    expect(await rows('SELECT "column", type, filled FROM sync_columns')).toEqual([
      { column: 'a', type: 'TEXT', filled: null },
    ])
  })
})
