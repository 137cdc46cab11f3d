import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { items, pageOf, type Reply, serve } from '../../helpers/list-server.ts'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { stop } from '../../helpers/processes.ts'
import { ACME } from '../../helpers/scene.ts'
import { createWorkspace, organization } from '../../helpers/workspace.ts'

const server = await openDatabase()

const HELD = organization('held', 2)

/** Tables that both stores have with the same columns, but for those of one of them alone. */
const TABLES =
  'orders orders_json orders_raw orders_history orders_changes orders__lines organizations sync_collections sync_columns sync_jobs sync_runs sync_walks sync_pages sync_rejects sync_refreshed sync_refused_tokens sync_missing sync_gates sync_shares sync_status'.split(
    ' ',
  )
const OWN = ['owner', 'epoch', 'version']

type Row = Record<string, unknown>

const textOf = (value: unknown) =>
  value === null ? null : value instanceof Date ? value.toISOString() : `${value as string | bigint}`

/** As texts, in one order: databases sort texts differently. PostgreSQL cannot hold NUL. */
function shown(rows: readonly Row[]): string[] {
  const lines = rows.map((row) =>
    Object.entries(row)
      .filter(([name]) => !OWN.includes(name))
      .map(([name, value]) => JSON.stringify([name, textOf(value)]))
      .toSorted((one, other) => (one < other ? -1 : 1))
      .join()
      .replaceAll(/\\+u0000/g, '?'),
  )
  return lines.toSorted((one, other) => (one < other ? -1 : 1))
}

function tablesIn(file: string): Record<string, string[]> {
  const reader = new Database(file, { readonly: true }).defaultSafeIntegers()
  const rows = (name: string) => reader.prepare(`SELECT * FROM "${name}"`).all() as Row[]
  const found = Object.fromEntries(TABLES.map((name) => [name, shown(rows(name))]))
  reader.close()
  return found
}

/** A mirror of what `listed` returns in a file, and a schema for it. */
async function scene(listed: () => readonly unknown[]) {
  const door = Promise.withResolvers<void>()
  let isOpen = true
  const api = await serve(async (asked): Promise<Reply> => {
    if (asked.organization === HELD.id) return { status: 401, body: { message: 'Unauthenticated.' } }
    if (!isOpen && asked.page === 4) await door.promise
    return pageOf(listed(), asked)
  })
  const settings = { organizations: [ACME, HELD] }
  const postgres = onPostgres(server, api.url, settings)
  const source = createWorkspace({ baseUrl: api.url, ...settings })
  await source.run(['sync'])
  const args = ['move', '--from', source.mirror, '--to', postgres.place]
  return {
    ...postgres,
    api,
    source,
    args,
    move: () => postgres.run(args),
    /** A walk that stops at its third page. */
    async interrupt() {
      isOpen = false
      const interrupted = source.start(['sync', '--org', 'acme'])
      await api.arrival(({ page }) => page === 4, 1 + api.asked.filter(({ page }) => page === 4).length)
      await stop(interrupted, 'SIGKILL')
      door.resolve()
      isOpen = true
    },
  }
}

describe.skipIf(server.missing !== null)('move', { timeout: 60_000 }, () => {
  it('copies all of a mirror, and the next sync goes on with its open walk', async () => {
    let listed: { id?: number; [name: string]: unknown }[] = [
      { id: 1, total: 1.5, paid: true, note: 'a', lines: [{ sku: 'x', n: 1 }, { sku: 'y' }] },
      { id: 2, total: 2, note: 'nul \u0000 here', lines: [{ sku: 'nul \u0000' }] },
      { id: 3, total: 1e300, note: String.raw`[\u0000x`, when: '2026-01-01T00:00:00Z' },
      { total: 4 },
      ...items(9).map((item) => ({ ...item, id: item.id + 10 })),
    ]
    const { source, api, run, rows, move, interrupt } = await scene(() => listed)
    listed = listed
      .map((item) => (item.id === 1 ? { ...item, total: 7 } : item))
      .filter(({ id }) => id !== 12)
    await source.run(['sync', '--org', 'acme'])
    await interrupt()
    source.change('CREATE TABLE mine (a); CREATE VIEW my_view AS SELECT id FROM orders')
    // The rows of the last runs and walks may be gone, and their ids are not given again.
    source.change('UPDATE sqlite_sequence SET seq = 100')
    const before = tablesIn(source.mirror)

    expect(await move()).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^moved: \d+ tables with \d+ rows to postgres:/) as string,
    })
    const read = await rows()
    for (const name of TABLES)
      expect([name, shown(await read(`SELECT * FROM "${name}"`))]).toEqual([name, before[name]])
    expect(tablesIn(source.mirror)).toEqual(before)
    const asked = api.asked.length
    expect(await run(['sync', '--org', 'acme'])).toMatchObject({ code: 0 })
    expect(api.asked.slice(asked).map(({ page }) => page)).not.toContain(1)
    expect((await run(['verify', '--org', 'acme'])).code).toBe(0)
    expect(JSON.parse((await run(['status', '--json'])).stdout)).toMatchObject({
      jobs: [{ coverage: expect.any(String) as string }, { held_since: expect.any(String) as string }],
    })
    expect(await read('SELECT max(id)::int AS id FROM sync_runs')).toEqual([{ id: 101 }])
    expect(await move()).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/holds a mirror already, and nothing of it was touched/) as string,
    })
  })

  it('lets a follower of events go on from the greatest seq that it has read, and cuts names of columns once', async () => {
    const name = 'x'.repeat(70)
    const list = 'lines_'.repeat(12)
    let listed: object[] = items(3).with(2, { id: 3, [name]: 7, [list]: [{ [name]: 8 }] } as never)
    const { source, run, rows, move } = await scene(() => listed)
    const eventsAfter = async (at: typeof run, seq: string) => {
      const sql = `SELECT * FROM orders_changes WHERE seq > ${seq} ORDER BY seq`
      return (await at(['query', sql, '--format', 'csv'])).stdout.split('\n').slice(1, -1)
    }
    // As if a machine had written it whose clock is a year ahead.
    source.change('UPDATE sync_seq SET seq = seq + 31536000000')
    listed = listed.with(0, { id: 1, state: 'shipped' })
    await source.run(['sync'])
    const read = await eventsAfter(source.run, '0')
    const [last = ''] = read.at(-1)?.split(',') ?? []
    expect(await move()).toMatchObject({ code: 0 })
    const [cut, cutList, view] = [name, list, `orders__${list}`].map((long) => long.slice(0, 63))
    const look = await rows()
    const known = await look(
      'SELECT view, array_column, "column" FROM sync_known_columns ORDER BY path, view',
    )
    expect(known).toEqual(
      expect.arrayContaining([
        { view: '', array_column: '', column: cut },
        { view, array_column: cutList, column: cut },
      ]),
    )
    expect(await eventsAfter(run, last)).toEqual([])
    listed = listed.with(1, { id: 2, state: 'shipped' })
    await run(['sync'])

    expect(read).toHaveLength(4)
    expect((await eventsAfter(run, '0')).slice(0, 4)).toEqual(read)
    expect(await eventsAfter(run, last)).toEqual([expect.stringMatching(/,2,changed,/)])
    expect(
      await look(
        `SELECT o."${cut}", l."${cut}" AS of_line FROM orders AS o JOIN "${view}" AS l ON _parent_id = id`,
      ),
    ).toEqual([{ [cut ?? '']: '7', of_line: '8' }])
  })

  it('says how many columns a server has no room for', async () => {
    const fields = Array.from({ length: 300 }, (_, index) => [`f${index}`, index])
    const { rows, move } = await scene(() => [{ id: 1, ...Object.fromEntries(fields) }])

    const full = '; a server has no room for 21 columns: see _json'
    expect((await move()).stderr).toContain(`orders: 1 row${full}\n`)
    const read = await rows()
    expect(
      await read(`SELECT f278, _json::json ->> 'f299' AS f299 FROM orders JOIN orders_json USING (_row)`),
    ).toEqual([{ f278: '278', f299: '299' }])
  })

  it('moves nothing where the server swallows rows, and all of it when it is typed again', async () => {
    const { address, rows, move } = await scene(() => items(3))
    const read = await rows()
    await read(`CREATE SCHEMA ${address.schema}`)
    await read('CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$')
    // Every table that is made calls this.
    const body =
      "IF to_regclass('sync_walks') IS NOT NULL THEN CREATE OR REPLACE TRIGGER swallow BEFORE INSERT ON sync_walks FOR EACH ROW EXECUTE FUNCTION swallow(); END IF;"
    await read(
      `CREATE FUNCTION at_table() RETURNS event_trigger LANGUAGE plpgsql AS $f$ BEGIN ${body} END $f$`,
    )
    await read(
      "CREATE EVENT TRIGGER at_table ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION at_table()",
    )

    expect(await move()).toMatchObject({
      code: 4,
      stdout: '',
      stderr: expect.stringMatching(/sync_walks has 0 rows on the server and 2 in the file/) as string,
    })
    for (const name of ['at_table', 'swallow']) await read(`DROP FUNCTION ${name} CASCADE`)
    expect(await read('SELECT 1 FROM pg_class WHERE relnamespace = current_schema()::regnamespace')).toEqual(
      [],
    )

    expect(await move()).toMatchObject({ code: 0 })
    expect(shown(await read('SELECT * FROM orders'))).toHaveLength(3)
  })

  it('refuses what it must not touch, and what others work on', async () => {
    const { run, move, source, args } = await scene(() => items(3))
    const [, , , , to = ''] = args
    const refusals: [from: string, to: string, code: number, message: RegExp][] = [
      ['absent.db', to, 4, /there is no mirror/],
      [source.file('admin-mirror.yaml'), to, 4, /no SQLite database/],
      [source.mirror, 'mirror2.db', 2, /--to must be like postgres:/],
      [source.mirror, `${to}x&nonsense=1`, 2, /--to must be like postgres:/],
      [
        source.mirror,
        'postgres://x@127.0.0.1:1/x',
        4,
        /cannot be reached .*the address names its host and port/,
      ],
    ]
    for (const [from, target, code, message] of refusals) {
      const ended = await run(['move', '--from', from, '--to', target])
      expect([ended.code, ended.stderr]).toEqual([code, expect.stringMatching(message)])
    }
    const daemon = source.start(['start'])
    await daemon.log(({ event }) => event === 'daemon_started')
    expect(await move()).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/BUSY: .* is in use: "admin-mirror start" runs on it/) as string,
    })
    await stop(daemon)
  })
})
