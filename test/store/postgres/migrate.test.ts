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
