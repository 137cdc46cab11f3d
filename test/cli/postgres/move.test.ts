import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { migrate } from '../../../src/store/postgres/migrate.ts'
import type { PostgresAddress } from '../../../src/store/postgres/server/pool.ts'
import { connectServer } from '../../../src/store/postgres/server/server.ts'
import { createDoor, items, pageOf, type Reply, serve } from '../../helpers/list-server.ts'
import { ACME, onPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase, type openReader } from '../../helpers/postgres.ts'
import { afterRealTime } from '../../helpers/real-time.ts'
import { createWorkspace, organization, variable } from '../../helpers/workspace.ts'

const server = await openDatabase()

const HELD = organization('held', 2)

/** Tables that both stores have with the same columns, but for those of one of them alone. */
const TABLES = [
  'orders',
  'orders_json',
  'orders_raw',
  'orders_history',
  'orders_changes',
  'orders__lines',
  'organizations',
  'sync_collections',
  'sync_columns',
  'sync_view_columns',
  'sync_jobs',
  'sync_runs',
  'sync_walks',
  'sync_pages',
  'sync_rejects',
  'sync_refreshed',
  'sync_refused_tokens',
  'sync_missing',
  'sync_gates',
  'sync_shares',
  'sync_status',
]
const OWN = ['sequence', 'owner', 'epoch', 'version', 'refresh_turn', 'refreshes_at', 'refreshes_until']

type Row = Record<string, unknown>

/** As texts, in one order: databases sort texts differently. */
function shown(rows: readonly Row[]): string[] {
  const lines = rows.map((row) =>
    Object.entries(row)
      .filter(([name]) => !OWN.includes(name))
      .map(([name, value]) => JSON.stringify([name, textOf(value)]))
      .toSorted((one, other) => (one < other ? -1 : 1))
      .join(),
  )
  return lines.toSorted((one, other) => (one < other ? -1 : 1))
}

function textOf(value: unknown): string | null {
  if (value === null) return null
  return value instanceof Date ? value.toISOString() : `${value as string | number | bigint}`
}

function tablesIn(file: string): Record<string, string[]> {
  const reader = new Database(file, { readonly: true }).defaultSafeIntegers()
  try {
    return Object.fromEntries(
      TABLES.map((name) => [name, shown(reader.prepare(`SELECT * FROM "${name}"`).all() as Row[])]),
    )
  } finally {
    reader.close()
  }
}

/** A mirror in a file, with history, rejects, a hold, rows that are missed, and a walk that stopped at its third page. */
async function scene() {
  let listed: unknown[] = [
    { id: 1, total: 1.5, paid: true, note: 'a', lines: [{ sku: 'x', n: 1 }, { sku: 'y' }] },
    { id: 2, total: 2, note: 'nul \u0000 here', lines: [{ sku: 'nul \u0000' }] },
    { id: 3, total: 1e300, note: 17, when: '2026-01-01T00:00:00Z' },
    { total: 4 },
    ...items(9).map((item) => ({ ...item, id: item.id + 10 })),
  ]
  const door = createDoor()
  let isOpen = true
  const api = await serve(async (asked): Promise<Reply> => {
    if (asked.organization === HELD.id) return { status: 401, body: { message: 'Unauthenticated.' } }
    if (!isOpen && asked.page === 4) await door.opened
    return pageOf(listed, asked)
  })
  const settings = { organizations: [ACME, HELD] }
  const postgres = onPostgres(server, api.url, settings)
  const workspace = createWorkspace({ baseUrl: api.url, ...settings })
  await workspace.run(['sync'])
  listed = listed
    .map((item) => ((item as { id?: number }).id === 1 ? { ...(item as object), total: 7 } : item))
    .filter((item) => (item as { id?: number }).id !== 12)
  await workspace.run(['sync', '--org', 'acme'])
  isOpen = false
  const interrupted = workspace.start(['sync', '--org', 'acme'])
  await api.arrivals(({ page }) => page === 4, 3)
  interrupted.killAll('SIGKILL')
  await interrupted.ended
  door.open()
  isOpen = true
  workspace.change('CREATE TABLE mine (a); CREATE VIEW my_view AS SELECT id FROM orders')
  const args = ['move', '--from', workspace.mirror, '--to', placeOf(postgres.address)]
  return {
    ...postgres,
    file: workspace.mirror,
    api,
    source: workspace,
    args,
    move: () => postgres.run(args),
    settle: (next: unknown[]) => {
      listed = next
    },
  }
}

describe.skipIf(server.missing !== null)('move', () => {
  it('copies all of a mirror, and the next sync goes on with its open walk', async () => {
    const { file, api, run, rows, move } = await scene()
    const before = tablesIn(file)

    const moved = await move()

    expect(moved).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^moved: \d+ tables with \d+ rows to postgres:/) as string,
    })
    const read = await rows()
    for (const name of TABLES) {
      // The reader's own times are as Dates, its counts as texts.
      const found = shown(await read(`SELECT * FROM "${name}"`))
      expect([name, found.map(storable)]).toEqual([name, (before[name] ?? []).map(storable)])
    }
    expect(tablesIn(file)).toEqual(before)
    const asked = api.asked.length
    expect(await run(['sync', '--org', 'acme'])).toMatchObject({ code: 0 })
    expect(api.asked.slice(asked).map(({ page }) => page)).not.toContain(1)
    expect((await run(['verify', '--org', 'acme'])).code).toBe(0)
    expect(JSON.parse((await run(['status', '--json'])).stdout)).toMatchObject({
      jobs: [{ coverage: expect.any(String) as string }, { held_since: expect.any(String) as string }],
    })
    const [runs] = await read('SELECT count(*)::int AS n, max(id)::int AS last FROM sync_runs')
    expect(runs).toMatchObject({ n: runs?.last })
  })

  it('lets a follower of events go on from the greatest seq that it has read, and cuts names of columns once', async () => {
    const name = 'x'.repeat(70)
    let listed: object[] = items(3).with(2, { id: 3, [name]: 7, lines: [{ [name]: 8 }] } as never)
    const api = await serve((asked) => pageOf(listed, asked, { perPage: 25 }))
    const postgres = onPostgres(server, api.url)
    const source = createWorkspace({ baseUrl: api.url, organizations: [ACME] })
    const eventsAfter = async (run: typeof source.run, seq: string) => {
      const sql = `SELECT * FROM orders_changes WHERE seq > ${seq} ORDER BY seq, id`
      const { stdout } = await run(['query', sql, '--format', 'csv'])
      return stdout.split('\n').slice(1, -1)
    }
    await source.run(['sync'])
    // As if a machine had written it whose clock is a year ahead.
    source.change('UPDATE sync_seq SET seq = seq + 31536000000')
    listed = listed.with(0, { id: 1, state: 'shipped' })
    await source.run(['sync'])
    const read = await eventsAfter(source.run, '0')
    const [last = ''] = read.at(-1)?.split(',') ?? []
    const moved = await postgres.run(['move', '--from', source.mirror, '--to', placeOf(postgres.address)])
    expect(moved).toMatchObject({ code: 0 })
    expect(await eventsAfter(postgres.run, last)).toEqual([])
    listed = listed.with(1, { id: 2, state: 'shipped' })
    await postgres.run(['sync'])

    expect(read).toHaveLength(4)
    expect((await eventsAfter(postgres.run, '0')).slice(0, 4)).toEqual(read)
    const next = await eventsAfter(postgres.run, last)
    expect(next).toHaveLength(1)
    expect(next[0]).toMatch(/,2,changed,/)
    const cut = name.slice(7)
    const look = await postgres.rows()
    expect(
      await look(
        `SELECT o."${cut}", l."${cut}" AS of_line FROM orders AS o JOIN orders__lines AS l ON _parent_id = id`,
      ),
    ).toEqual([{ [cut]: '7', of_line: '8' }])
    expect(await look('SELECT 1 FROM sync_columns WHERE "column" LIKE \'x%\'')).toHaveLength(1)
  })

  it('moves nothing where it is killed, and all of it when it is typed again', async () => {
    const { file, address, args, start, rows, move } = await scene()
    const before = tablesIn(file)
    await makeSchema(address)
    const [one, two] = [await rows(), await rows()]
    await one('SELECT pg_advisory_lock(1)')
    await one(
      'CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$',
    )
    await one('CREATE TRIGGER pause BEFORE INSERT ON sync_pages EXECUTE FUNCTION pause()')
    const moving = start(args)
    await waiting(two)
    moving.killAll('SIGKILL')
    await moving.ended
    await one('SELECT pg_advisory_unlock(1)')
    await one('DROP FUNCTION pause CASCADE')
    expect(await one('SELECT 1 FROM organizations')).toEqual([])

    expect(await move()).toMatchObject({ code: 0 })
    for (const name of TABLES)
      expect([name, shown(await one(`SELECT * FROM "${name}"`)).map(storable)]).toEqual([
        name,
        (before[name] ?? []).map(storable),
      ])
  })

  it('moves nothing where something on the server swallows rows', async () => {
    const { address, move, rows } = await small(items(3))
    await makeSchema(address)
    const read = await rows()
    await read('CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$')
    await read('CREATE TRIGGER swallow BEFORE INSERT ON sync_pages FOR EACH ROW EXECUTE FUNCTION swallow()')

    expect(await move()).toMatchObject({
      code: 4,
      stdout: '',
      stderr: expect.stringMatching(/sync_pages has 0 rows on the server and 3 in the file/) as string,
    })
    expect(await read('SELECT 1 FROM sync_runs')).toEqual([])
  })

  it('leaves keys as they are that look like lists', async () => {
    const keys = [String.raw`[\u0000x`, String.raw`[\ud800]`]
    const { move, rows } = await small(keys.map((id) => ({ id })))
    expect(await move()).toMatchObject({ code: 0 })
    const read = await rows()
    for (const table of ['orders', 'orders_raw'])
      expect(await read(`SELECT id FROM ${table} ORDER BY id COLLATE "C"`)).toEqual(
        keys.map((id) => ({ id })),
      )
  })

  it("counts on in its own tables, and leaves another table's count", async () => {
    const { address, move, rows } = await small(items(1))
    await makeSchema(address)
    const read = await rows()
    await read('CREATE TABLE mine (id bigint GENERATED BY DEFAULT AS IDENTITY, n int)')
    await read('INSERT INTO mine VALUES (3)')
    await read("SELECT setval(pg_get_serial_sequence('mine', 'id'), 41)")

    expect(await move()).toMatchObject({ code: 0 })

    expect(await read('INSERT INTO mine DEFAULT VALUES RETURNING id::int')).toEqual([{ id: 42 }])
    const last = 'SELECT last_value = (SELECT max(id) FROM sync_runs) AS same FROM sync_runs_id_seq'
    expect(await read(last)).toEqual([{ same: true }])
  })

  it('refuses what it must not touch, and what others work on', async () => {
    const { run, move, source, file, args } = await scene()
    const move2 = (from: string, to = args[4] ?? '') => run(['move', '--from', from, '--to', to])
    const refused = async (ended: ReturnType<typeof run>, code: number, message: RegExp) => {
      const { code: found, stderr } = await ended
      expect([found, stderr]).toEqual([code, expect.stringMatching(message)])
    }
    await refused(move2('absent.db'), 4, /there is no mirror/)
    await refused(move2(source.file('admin-mirror.yaml')), 4, /no SQLite database/)
    await refused(move2(file, 'mirror2.db'), 2, /--to must be the address of a PostgreSQL database/)
    await refused(move2(file, `${args[4]}x&nonsense=1`), 2, /--to may have only these settings/)
    await refused(run(['move', '--from', file]), 2, /--to/)

    const daemon = source.start(['start'])
    await daemon.log(({ event }) => event === 'daemon_started')
    await refused(move(), 1, /BUSY: .* is in use: "admin-mirror start" runs on it/)
    daemon.killAll('SIGTERM')
    await daemon.ended
    expect(await run(['sync', '--org', 'acme'])).toMatchObject({ code: 0 })
    await refused(move(), 4, /holds a mirror already, and nothing of it was touched/)
  })
})

/** A mirror of these items in a file, and an empty schema for it. */
async function small(listed: readonly object[]) {
  const api = await serve((asked) => pageOf(listed, asked))
  const postgres = onPostgres(server, api.url)
  const source = createWorkspace({ baseUrl: api.url, organizations: [ACME] })
  await source.run(['sync'])
  const move = () => postgres.run(['move', '--from', source.mirror, '--to', placeOf(postgres.address)])
  return { ...postgres, source, move }
}

function placeOf({ user, host, port, database, schema }: PostgresAddress): string {
  return `postgres://${user}:${variable('DB_PASSWORD')}@${host}:${port}/${database}?schema=${schema}`
}

async function makeSchema(address: PostgresAddress): Promise<void> {
  const { now, sleep } = { now: Date.now, sleep: () => Promise.resolve() }
  const connected = await connectServer(address, {
    now,
    sleep,
    after: afterRealTime,
    signal: new AbortController().signal,
  })
  await migrate(connected)
  await connected.close()
}

/** Until so many statements wait for what the test has locked. */
async function waiting(read: Awaited<ReturnType<typeof openReader>>, count = 1): Promise<void> {
  const sql =
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'admin-mirror'"
  while ((await read(sql)).length < count) await new Promise((wake) => setTimeout(wake, 20))
}

/** PostgreSQL cannot hold NUL. */
function storable(text: string): string {
  return text.replaceAll(/\\+u0000/g, '?')
}
