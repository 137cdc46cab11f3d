import { describe, expect, it } from 'vitest'
import { makeSchema } from '../../../src/store/postgres/migrate.ts'
import { connectServer } from '../../../src/store/postgres/server.ts'
import { LATEST_VERSION } from '../../../src/store/schema.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'
import { newSchema, openDatabase, openReader } from '../../helpers/postgres.ts'
import { shortPatience } from '../../helpers/real-time.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'
import { begin } from '../stage.ts'

const server = await openDatabase()

/** What the interface calls the types of a server. */
const WORDS: Record<string, string> = {
  bigint: 'INTEGER',
  'double precision': 'REAL',
  text: 'TEXT',
  'timestamp with time zone': 'TIME',
}

const IS_TIME = /(?:^|_)(?:at|since|until|from|to|of)$/

const shown = (rows: Record<string, unknown>[], word: (type: string, name: string) => string) =>
  rows
    .map(({ t, c, type }) => `${String(t)}.${String(c)} ${word(String(type), String(c))}`)
    .filter((line) => !line.startsWith('sync_workers'))
    .toSorted()

describe.skipIf(server.missing !== null)('a schema', { timeout: 60_000 }, () => {
  it('is made by any number of workers that start at once', async () => {
    const address = newSchema(server)
    const rows = await openReader(address)
    const servers = await Promise.all(
      Array.from({ length: 5 }, () => connectServer(address, shortPatience())),
    )
    await Promise.all(servers.map((one) => one.write(() => makeSchema(one))))
    await Promise.all(servers.map((one) => one.close()))

    expect(await rows("SELECT value FROM sync_settings WHERE name = 'version'")).toEqual([
      { value: String(LATEST_VERSION) },
    ])
  })

  it('has the tables and columns of a file, with the types of the interface', async () => {
    const mirror = await openPostgresMirror(newSchema(server))
    const file = openTestMirror()
    for (const one of [mirror, file]) {
      const open = await begin(one)
      await open.page('{"id":1,"n":2,"r":0.5,"s":"a","items":[{"n":1,"r":0.5,"s":"a"}]}')
    }
    const onServer = await mirror.rows(
      `SELECT relname AS t, attname AS c, format_type(atttypid, NULL) AS type FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
       WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v') AND attnum > 0`,
    )
    const inFile = file.rows(
      `SELECT m.name AS t, c.name AS c, CASE c.type WHEN 'INT' THEN 'INTEGER' ELSE c.type END AS type
       FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.name NOT LIKE 'sqlite%'`,
    )

    expect(shown(onServer, (type) => WORDS[type] ?? type)).toEqual(
      shown(inFile, (type, name) => (type === 'TEXT' && IS_TIME.test(name) ? 'TIME' : type)),
    )
  })
})
