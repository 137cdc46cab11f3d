import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect } from 'vitest'
import { items } from '../helpers/list-server.ts'
import { OUTSIDE_READERS } from '../helpers/outside-readers.ts'
import { IS_ROOT, runs } from '../helpers/processes.ts'
import { ACME, createScene, NEVER, type Scene, sceneTests } from '../helpers/scene.ts'
import { NAMES } from '../store/names.ts'

const it = sceneTests()

// What the published file and a snapshot hold, and who can read them. When a file is made: test/cli/publisher.test.ts.

/** Fields of every name that means something to somebody. */
const NAMED = Object.fromEntries(NAMES.map((name, index) => [name, index]))

/** The first one, and its first line, have fields of all these names. */
const orders = (count: number, value = 1) =>
  Array.from({ length: count }, (_, index) => ({
    ...(index === 0 ? NAMED : {}),
    id: index + 1,
    value,
    placed_at: `2026-01-0${(index % 9) + 1}T10:00:00Z`,
    lines: [
      { sku: `S-${index % 2}`, quantity: 2, price: 1.5, ...(index === 0 ? NAMED : {}) },
      { sku: 'T', quantity: '12345678901234567890' },
    ],
  }))

function ask(file: string, sql: string): Record<string, unknown>[] {
  const connection = new Database(file, { readonly: true })
  try {
    return connection.prepare(sql).all() as Record<string, unknown>[]
  } finally {
    connection.close()
  }
}

const sorted = (rows: object[]) => rows.map((row) => JSON.stringify(row)).toSorted()

/** Published twice, with a change between, and an index of a user's. */
let scene: Scene
let copy: string

beforeAll(async () => {
  scene = await createScene({
    list: orders(60),
    settings: { schedule: NEVER, publish: 'published/copy.db' },
  })
  copy = scene.workspace.file('published/copy.db')
  await scene.workspace.run(['sync'])
  const reader = new Database(copy, { readonly: true })
  const values = reader.prepare('SELECT DISTINCT value FROM orders').pluck()
  expect(values.all()).toEqual([1])
  scene.workspace.change('CREATE INDEX mine ON orders (placed_at)')
  scene.workspace.change('CREATE INDEX of_runs ON Sync_Runs (rows_seen)')
  scene.workspace.change('CREATE INDEX of_workings ON sync_runs (_brief)')
  scene.workspace.change("CREATE INDEX of_syncs ON sync_walks (collection) WHERE _origin = 'sync'")
  scene.api.list = orders(60, 2)
  expect((await scene.workspace.run(['sync'])).code).toBe(0)
  // Who has the old file open keeps it.
  expect(values.all()).toEqual([1])
  reader.close()
})

async function exported(...args: string[]) {
  const { code, stdout } = await scene.workspace.run(['export', 'orders', '--format', 'ndjson', ...args])
  return [code, stdout.split('\n').toSorted()]
}

describe('the published file', () => {
  it.for(OUTSIDE_READERS)('is one file, opened by $name in a folder that nobody may write', ({ read }) => {
    expect(fs.statSync(copy).mode & 0o777).toBe(0o644)
    expect(fs.statSync(path.dirname(copy)).mode & 0o777).toBe(0o755)
    expect(fs.readdirSync(path.dirname(copy))).toEqual(['copy.db'])
    fs.chmodSync(path.dirname(copy), 0o555)
    try {
      expect(read(copy, 'PRAGMA journal_mode')).toEqual([{ journal_mode: 'delete' }])
      expect(read(copy, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
      expect(read(copy, 'SELECT count(*) AS lines FROM orders__lines')).toEqual([{ lines: 120 }])
    } finally {
      fs.chmodSync(path.dirname(copy), 0o755)
    }
  })

  it('holds the same rows under the same names, is exported like the mirror, and has views of arrays as tables', async () => {
    const ofOrders = ['', '_raw', '_history', '__lines', '_changes', '_versions'].map((end) => `orders${end}`)
    for (const name of [...ofOrders, 'sync_status', 'sync_columns', 'sync_walks', 'organizations']) {
      const theirs = ask(copy, `SELECT * FROM ${name}`)
      const columns = Object.keys(theirs[0] ?? {}).map((column) => `"${column.replaceAll('"', '""')}"`)
      const ours = scene.workspace.rows(`SELECT ${columns.join(', ')} FROM ${name}`)
      expect(ours.length).toBeGreaterThan(0)
      expect([name, sorted(theirs)]).toEqual([name, sorted(ours)])
      if (['orders', 'orders__lines'].includes(name)) expect(columns.length).toBeGreaterThan(NAMES.length)
    }
    expect(await exported('--database', copy, '--org', 'acme')).toEqual(await exported())
    expect(ask(copy, "SELECT type, sql FROM sqlite_schema WHERE name = 'orders__lines'")).toEqual([
      {
        type: 'table',
        sql: expect.stringMatching(/"_index" INTEGER, .*"sku" TEXT, "quantity" INTEGER, "price" REAL/),
      },
    ])
  })

  it("has the user's indexes, one on the parents of elements, and statistics", () => {
    const plan = (sql: string) => JSON.stringify(ask(copy, `EXPLAIN QUERY PLAN ${sql}`))
    const ofParent = `_organization_id = '${ACME.id}' AND _parent_id = 3`

    expect(plan("SELECT * FROM orders WHERE placed_at > '2026-01-05'")).toContain('USING INDEX mine')
    expect(plan('SELECT * FROM sync_runs INDEXED BY of_runs WHERE rows_seen > 9')).toContain(
      'USING INDEX of_runs',
    )
    expect(plan(`SELECT * FROM orders__lines WHERE ${ofParent}`)).toContain('_orders__lines_by_parent')
    expect(ask(copy, "SELECT 1 FROM sqlite_stat1 WHERE tbl = 'orders__lines'")).not.toEqual([])
  })

  it('has none of the workings of the program in it', () => {
    const schema = ask(copy, 'SELECT sql FROM sqlite_schema').map(({ sql }) => String(sql))
    const secrets = scene.workspace.rows<{ value: string }>(
      `SELECT last_fingerprint AS value FROM sync_organizations UNION ALL SELECT value FROM sync_settings WHERE name LIKE '%salt%'`,
    )
    const bytes = fs.readFileSync(copy, 'latin1')

    expect(schema.join('\n')).not.toMatch(
      /fingerprint|sync_gates|sync_settings|sync_pages|sync_jobs|sync_missing|sync_workers|account|owner/,
    )
    expect(secrets.length).toBeGreaterThan(0)
    for (const { value } of secrets) expect(bytes).not.toContain(value)
  })

  it('says that a token was refused though no row has changed, and keeps nothing of what was forgotten', async () => {
    const { workspace, api } = scene
    api.instead = () => ({ status: 401, body: {} })
    expect((await workspace.run(['sync'])).code).toBe(3)

    expect(ask(copy, 'SELECT error_code, held_since IS NOT NULL AS held FROM sync_status')).toEqual([
      { error_code: 'UNAUTHORIZED', held: 1 },
    ])
    await workspace.run(['resume'])
    expect(ask(copy, 'SELECT held_since FROM organizations')).toEqual([{ held_since: null }])

    await workspace.run(['forget', '--org', 'acme', '--yes'])
    expect(ask(copy, 'SELECT count(*) AS rows FROM orders_raw')).toEqual([{ rows: 0 }])
    expect(fs.readFileSync(copy, 'latin1')).not.toContain('placed_at":"2026')
  })
})

it.runIf(IS_ROOT && runs('unshare', '-m', 'true'))(
  'a published file that is mounted by itself is not replaced: sync says so, and what to mount',
  async () => {
    const { workspace } = await createScene({ list: items(3), settings: { publish: 'published.db' } })
    for (const name of ['outside.db', 'published.db']) fs.writeFileSync(workspace.file(name), '')
    const mount = `mount --bind ${workspace.file('outside.db')} ${workspace.file('published.db')}`
    const mounted = { through: ['unshare', '-m', 'sh', '-c', `${mount} && exec "$@"`, 'sh'] }
    const sync = await workspace.run(['sync'], mounted)

    const msg = expect.stringMatching(
      /^nothing was published: .*published\.db cannot be .*: mount its folder /,
    )
    expect(sync.logs).toContainEqual(expect.objectContaining({ event: 'publish_failed', msg }))
    expect(sync.code).toBe(0)
  },
)

describe('snapshot', () => {
  it('copies the mirror, or a copy, to be put in its place, and touches no file that exists', async ({
    synced,
  }) => {
    const { file, run, mirror, value } = synced.workspace
    const without = { env: { ADMIN_MIRROR_CONFIG: '' } }
    expect(await run(['snapshot', 'one.db'])).toMatchObject({ code: 0, stdout: '' })
    expect((await run(['snapshot', 'two.db', '--database', 'one.db'], without)).code).toBe(0)

    for (const name of ['one.db', 'two.db']) {
      expect(ask(file(name), 'SELECT count(*) AS rows FROM orders')).toEqual([{ rows: 4 }])
      expect(ask(file(name), 'PRAGMA journal_mode')).toEqual([{ journal_mode: 'delete' }])
      expect(await run(['status', '--database', name], without)).toMatchObject({ code: 0 })
    }
    synced.configure({ database: 'two.db' })
    expect(await run(['sync'])).toMatchObject({ code: 0 })
    expect(ask(file('two.db'), 'PRAGMA journal_mode')).toEqual([{ journal_mode: 'wal' }])

    fs.writeFileSync(file('other.db'), '')
    fs.symlinkSync('nowhere', file('link.db'))
    for (const name of ['other.db', 'link.db', mirror, 'absent/copy.db'])
      expect((await run(['snapshot', name])).code, name).toBe(2)
    expect(value('SELECT count(*) FROM orders')).toBe(4)
    expect(fs.existsSync(file('absent'))).toBe(false)
  })

  it('says nothing of processes that worked on the mirror, or died, and of what could not be published', async ({
    synced,
  }) => {
    const { file, run, change } = synced.workspace
    change(`
      INSERT INTO sync_workers VALUES ('far-7-f00', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', 'x');
      UPDATE sync_jobs SET owner = 'far-7-f00', verifying = 1;
      INSERT INTO sync_settings VALUES ('publish_failed', 'no room')
    `)
    expect((await run(['status'])).stdout).toMatch(/died/)
    expect((await run(['snapshot', 'one.db'])).code).toBe(0)

    const { stdout } = await run(['status', '--database', 'one.db'], { env: { ADMIN_MIRROR_CONFIG: '' } })
    expect(stdout).not.toMatch(/died|verify/)
    expect(fs.readFileSync(file('one.db'), 'latin1')).not.toMatch(/far-7-f00|no room/)
  })
})
