import { describe, expect, it } from 'vitest'
import { migrate } from '../../../src/store/postgres/migrate.ts'
import { connectServer } from '../../../src/store/postgres/server.ts'
import { LATEST_VERSION } from '../../../src/store/schema.ts'
import { newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'
import { shortPatience } from '../../helpers/real-time.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'

const server = await openDatabase()

const shown = (rows: Record<string, unknown>[]) =>
  rows
    .map(({ t, c }) => `${String(t)}.${String(c)}`)
    .filter((name) => !/\._?sequence$|^sync_workers/.test(name))
    .toSorted()

describe.skipIf(server.missing !== null)('a schema', { timeout: 60_000 }, () => {
  it('is made by any number of workers that start at once', async () => {
    const address = newSchema(server)
    const rows = await openReader(address)
    const servers = await Promise.all(
      Array.from({ length: 5 }, () => connectServer(address, shortPatience())),
    )
    await Promise.all(servers.map(migrate))
    await Promise.all(servers.map((one) => one.close()))

    expect(await rows("SELECT value FROM sync_settings WHERE name = 'version'")).toEqual([
      { value: String(LATEST_VERSION) },
    ])
  })

  it('has the columns of a file', async () => {
    const mirror = await openPostgresMirror(newSchema(server))
    const onServer = await mirror.rows(
      `SELECT relname AS t, attname AS c FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
       WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v') AND attnum > 0`,
    )
    const inFile = openTestMirror().rows(
      `SELECT m.name AS t, c.name AS c FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.name NOT LIKE 'sqlite%'`,
    )

    expect(shown(onServer)).toEqual(shown(inFile))
  })
})
