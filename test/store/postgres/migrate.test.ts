import { describe, expect, it } from 'vitest'
import { migrate } from '../../../src/store/postgres/migrate.ts'
import { newSchema, openDatabase } from '../../helpers/postgres.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'

const server = await openDatabase()

const isOfBoth = (name: string) => !/\._?sequence$|^sync_help|^sync_workers/.test(name)
const shown = (rows: Record<string, unknown>[]) => rows.map(({ t, c }) => `${String(t)}.${String(c)}`)

describe.skipIf(server.missing !== null)('a schema', { timeout: 60_000 }, () => {
  it('of a version before 1.0.0 is refused', async () => {
    const mirror = await openPostgresMirror(newSchema(server))
    await mirror.server.transaction((sql) =>
      sql.exec("UPDATE sync_settings SET value = '12' WHERE name = 'version'"),
    )

    await expect(migrate(mirror.server)).rejects.toThrow(/before 1\.0\.0.*read the lists again/)
  })

  it('has its own views made anew, with who may read them and what reads them', async () => {
    const mirror = await openPostgresMirror(newSchema(server))
    const columns =
      'SELECT string_agg(attname, $$ $$ ORDER BY attnum) AS names FROM pg_attribute WHERE attnum > 0 AND attrelid = '
    const names = () => mirror.rows(`${columns}'sync_status'::regclass`)
    const before = await names()
    await mirror.server.transaction((sql) =>
      sql.exec(`
        DROP VIEW sync_status;
        CREATE VIEW sync_status WITH (security_invoker = true) AS
        SELECT organization_id, collection AS organization, collection AS removed FROM sync_jobs;
        GRANT SELECT ON sync_status TO pg_monitor;
        CREATE VIEW mine AS SELECT organization FROM sync_status;
        UPDATE sync_settings SET value = 'other' WHERE name = 'views'
      `),
    )

    await migrate(mirror.server)
    // It has a column that ours has not, so a later version made it.
    expect(await names()).toEqual([{ names: 'organization_id organization removed' }])
    await mirror.server.transaction((sql) =>
      sql.exec(`
        ALTER VIEW sync_status RENAME COLUMN removed TO collection;
        UPDATE sync_settings SET value = 'other' WHERE name = 'views'
      `),
    )
    await migrate(mirror.server)

    expect(await names()).toEqual(before)
    const rights =
      "SELECT reloptions AS options, has_table_privilege('pg_monitor', oid, 'SELECT') AS may FROM pg_class"
    expect(await mirror.rows(`${rights} WHERE oid = 'sync_status'::regclass`)).toEqual([
      { options: ['security_invoker=true'], may: true },
    ])
    expect(await mirror.rows('SELECT organization FROM mine ORDER BY 1')).toEqual([
      { organization: 'acme' },
      { organization: 'globex' },
    ])
  })
})

describe.skipIf(server.missing !== null)('the tables of a server', { timeout: 60_000 }, () => {
  it('have the columns of those of a file', async () => {
    const mirror = await openPostgresMirror(newSchema(server))
    const file = openTestMirror()

    const onServer = await mirror.rows(
      `SELECT relname AS t, attname AS c FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
       WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v') AND attnum > 0`,
    )
    const inFile = file.rows(
      `SELECT m.name AS t, c.name AS c FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.name NOT LIKE 'sqlite%'`,
    )

    expect(shown(onServer).filter(isOfBoth).toSorted()).toEqual(shown(inFile).filter(isOfBoth).toSorted())
  })
})
