import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { OUTSIDE_READERS } from '../helpers/outside-readers.ts'
import { type Asked, pageOf, serve } from './list-server.ts'
import type { LogLine } from './processes.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

const NEVER = '0 0 29 2 *'
const COPY = 'published/copy.db'
const published = ({ msg }: LogLine) => msg === 'published'

function orders(count: number, value = 1) {
  return Array.from({ length: count }, (_, index) => ({
    id: index + 1,
    value,
    customer_id: index % 3,
    placed_at: `2026-01-0${(index % 9) + 1}T10:00:00Z`,
    lines: [{ sku: `S-${index % 2}`, quantity: 2, name: 'x' }],
  }))
}

/** A list that a test may replace, and a mirror of it that is published. */
async function createScene(settings: object = {}, count = 6) {
  const list = { items: orders(count) }
  const server = await serve((asked: Asked) => pageOf(list.items, asked))
  const workspace = createWorkspace()
  const configure = (more: object = {}) =>
    workspace.configure({
      baseUrl: server.url,
      organizations: [organization('acme', 1)],
      schedule: NEVER,
      publish: COPY,
      ...settings,
      ...more,
    })
  configure()
  return { list, server, workspace, configure, copy: workspace.file(COPY) }
}

function ask(file: string, sql: string): Record<string, unknown>[] {
  const connection = new Database(file, { readonly: true })
  try {
    return connection.prepare(sql).all() as Record<string, unknown>[]
  } finally {
    connection.close()
  }
}

function left(workspace: Workspace): string[] {
  return fs.readdirSync(path.join(workspace.folder, 'published')).toSorted()
}

describe.concurrent('a sync with publish', () => {
  it('publishes at its end one file in which everything is, and its numbers beside it', async () => {
    const { workspace, copy } = await createScene()

    const { code, logs } = await workspace.run(['sync'])

    expect(code).toBe(0)
    const line = logs.find(published)
    const numbers = JSON.parse(fs.readFileSync(`${copy}.json`, 'utf8'))
    const { size, mode } = fs.statSync(copy)
    expect(line).toMatchObject({ level: 'info', bytes: size })
    expect(line?.rows).toBe(Object.values<number>(numbers.rows).reduce((sum, rows) => sum + rows, 0))
    expect(numbers).toMatchObject({
      rows: { orders: 6, orders_raw: 6, orders__lines: 6, orders_changes: 6, orders_history: 0 },
      sha256: createHash('sha256').update(fs.readFileSync(copy)).digest('hex'),
      jobs: [{ organization: 'acme', collection: 'orders', fresh_as_of: expect.any(String) }],
    })
    expect(numbers.jobs[0].as_of).toBe(workspace.value('SELECT as_of FROM sync_status'))
    expect([mode & 0o777, fs.statSync(`${copy}.json`).mode & 0o777]).toEqual([0o644, 0o644])
    expect(left(workspace)).toEqual(['copy.db', 'copy.db.json'])
  })

  it('holds the same rows under the same names, and views as tables', async () => {
    const { list, workspace, copy } = await createScene()
    await workspace.run(['sync'])
    list.items = orders(6, 2)
    await workspace.run(['sync'])

    const names = [
      'orders',
      'orders_raw',
      'orders_history',
      'orders__lines',
      'orders_changes',
      'sync_status',
      'sync_columns',
    ]
    for (const name of names) {
      const [ours, theirs] = [workspace.rows(`SELECT * FROM ${name}`), ask(copy, `SELECT * FROM ${name}`)]
      expect(ours.length).toBeGreaterThan(0)
      const shown = Object.keys(theirs[0] ?? {})
      expect(theirs.map((row) => JSON.stringify(row)).toSorted()).toEqual(
        ours
          .map((row) =>
            JSON.stringify(Object.fromEntries(shown.map((column) => [column, (row as never)[column]]))),
          )
          .toSorted(),
      )
      expect(ask(copy, `SELECT type FROM sqlite_schema WHERE name = '${name}'`)).toEqual([{ type: 'table' }])
    }
  })

  it('has none of the workings of the program in it', async () => {
    const { workspace, copy } = await createScene()
    await workspace.run(['sync'])

    const schema = ask(copy, 'SELECT name, sql FROM sqlite_schema')
      .map(({ sql }) => String(sql))
      .join('\n')

    expect(schema).not.toMatch(
      /fingerprint|sync_gates|sync_settings|sync_pages|sync_jobs|sync_missing|account|owner/,
    )
    const secrets = workspace.rows<{ value: string }>(
      `SELECT last_fingerprint AS value FROM organizations UNION ALL SELECT value FROM sync_settings WHERE name LIKE '%salt%'`,
    )
    const bytes = fs.readFileSync(copy, 'latin1')
    expect(secrets.length).toBeGreaterThan(0)
    for (const { value } of secrets) expect(bytes).not.toContain(value)
  })

  it.each(OUTSIDE_READERS)('can be opened by $name in a folder that nobody may write', async ({ read }) => {
    const { workspace, copy } = await createScene()
    await workspace.run(['sync'])
    const folder = path.dirname(copy)
    fs.chmodSync(folder, 0o555)

    try {
      expect(read(copy, 'PRAGMA journal_mode')).toEqual([{ journal_mode: 'delete' }])
      expect(read(copy, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
      expect(read(copy, 'SELECT count(*) AS lines FROM orders__lines')).toEqual([{ lines: 6 }])
    } finally {
      fs.chmodSync(folder, 0o755)
    }
  })

  it('leaves the file as it is where only freshness changed, and writes the numbers; a changed list makes it again', async () => {
    const { list, workspace, copy } = await createScene()
    await workspace.run(['sync'])
    const [before, own] = [fs.statSync(copy), ask(copy, 'SELECT as_of FROM sync_status')]

    const again = await workspace.run(['sync'])

    expect(again.logs).toContainEqual(
      expect.objectContaining({ event: 'published_freshness', level: 'info' }),
    )
    expect(fs.statSync(copy)).toMatchObject({ ino: before.ino, mtimeMs: before.mtimeMs })
    const { jobs, sha256, created_at: madeAt } = JSON.parse(fs.readFileSync(`${copy}.json`, 'utf8'))
    const fresh = workspace.rows('SELECT as_of, last_complete_at, fresh_as_of FROM sync_status')
    expect(jobs).toEqual([expect.objectContaining(fresh[0])])
    expect(own).not.toEqual([{ as_of: jobs[0].as_of }])
    expect(sha256).toBe(createHash('sha256').update(fs.readFileSync(copy)).digest('hex'))
    expect(madeAt).toBe(before.mtime.toISOString())
    expect([fs.statSync(`${copy}.json`).mode & 0o777, left(workspace)]).toEqual([
      0o644,
      ['copy.db', 'copy.db.json'],
    ])

    list.items = orders(6, 2)
    expect((await workspace.run(['sync'])).logs.some(published)).toBe(true)
    expect(ask(copy, 'SELECT DISTINCT value FROM orders')).toEqual([{ value: 2 }])
  })

  it('makes the file again after a rebuild', async () => {
    const { workspace } = await createScene()
    await workspace.run(['sync'])
    await workspace.run(['rebuild'])

    expect((await workspace.run(['sync'])).logs.some(published)).toBe(true)
    expect((await workspace.run(['sync'])).logs.some(published)).toBe(false)
  })

  it('is as fresh as the numbers beside it say, if these are about it', async () => {
    const { workspace, copy } = await createScene()
    await workspace.run(['sync'])
    const own = workspace.value('SELECT as_of FROM sync_status')
    await workspace.run(['sync'])
    const fresh = workspace.value('SELECT fresh_as_of FROM sync_status')
    const numbers = fs.readFileSync(`${copy}.json`, 'utf8')
    const status = async () => {
      const { stdout } = await workspace.run(['status', '--json', '--database', copy])
      return JSON.parse(stdout).jobs[0]
    }

    expect(await status()).toMatchObject({ as_of: fresh, fresh_as_of: fresh })
    // Copied elsewhere together.
    for (const end of ['', '.json']) fs.copyFileSync(copy + end, workspace.file(`elsewhere.db${end}`))
    const elsewhere = await workspace.run(['status', '--json', '--database', 'elsewhere.db'])
    expect(JSON.parse(elsewhere.stdout).jobs).toMatchObject([{ as_of: fresh }])

    const old = numbers.replaceAll(String(fresh), '2020-01-01T00:00:00.000Z')
    fs.writeFileSync(`${copy}.json`, old)
    const stale = await workspace.run(['status', '--database', copy, '--fresh', '1h', '--max-age', '100d'])
    expect([stale.code, (await status()).as_of]).toEqual([1, '2020-01-01T00:00:00.000Z'])

    for (const other of [old.replace(/"sha256": "\w{4}/, '"sha256": "0000'), '{}', 'no JSON']) {
      fs.writeFileSync(`${copy}.json`, other)
      expect((await status()).as_of).toBe(own)
    }
  })

  it('leaves who has the old file open with the old file', async () => {
    const { list, workspace, copy } = await createScene({ publishMode: '0600' })
    await workspace.run(['sync'])
    const reader = new Database(copy, { readonly: true })
    const count = reader.prepare('SELECT count(*) FROM orders').pluck()
    expect(count.get()).toBe(6)

    list.items = orders(9)
    await workspace.run(['sync'])

    expect(count.get()).toBe(6)
    reader.close()
    expect(ask(copy, 'SELECT count(*) AS rows FROM orders')).toEqual([{ rows: 9 }])
    expect(fs.statSync(copy).mode & 0o777).toBe(0o600)
  })

  it.each<[string, (copy: string) => void, RegExp]>([
    ['a file of something else', (copy) => fs.writeFileSync(copy, 'precious'), /is no copy of a mirror/],
    ['a folder', (copy) => fs.mkdirSync(copy), /is no copy of a mirror/],
    ['a journal beside it', (copy) => fs.writeFileSync(`${copy}-journal`, 'hot'), /has written to/],
    [
      'numbers of something else',
      (copy) => fs.writeFileSync(`${copy}.json`, '{"name":"my-package"}'),
      /not written by this program/,
    ],
  ])(
    'touches nothing where there is %s: a warning, and the run is as it was',
    async (_what, put, message) => {
      const { workspace, copy } = await createScene()
      fs.mkdirSync(path.dirname(copy))
      put(copy)
      const before = left(workspace)

      const { code, logs } = await workspace.run(['sync'])

      expect(code).toBe(0)
      expect(logs.filter(({ level }) => level !== 'info')).toEqual([
        expect.objectContaining({
          level: 'warn',
          msg: expect.stringContaining('not published'),
          reason: expect.stringMatching(message),
        }),
      ])
      expect(left(workspace)).toEqual(before)
    },
  )

  it('does not publish where no walk was complete', async () => {
    const { workspace, copy, server } = await createScene()
    await server.close()

    const { code } = await workspace.run(['sync'])

    expect(code).toBe(1)
    expect(fs.existsSync(copy)).toBe(false)
  })

  it('clears away what a killed process left, and nothing else', async () => {
    const { list, workspace, copy } = await createScene()
    await workspace.run(['sync'])
    list.items = orders(7)
    const folder = path.dirname(copy)
    const lock = '4711-0123456789ab'
    fs.writeFileSync(path.join(`${workspace.mirror}-owners`, lock), '')
    fs.writeFileSync(path.join(folder, `.copy.db.${lock}.unfinished`), 'half')
    fs.writeFileSync(path.join(folder, `.other.db.${lock}.unfinished`), 'not ours')
    fs.writeFileSync(path.join(folder, '.copy.db.4712-0123456789ab.unfinished'), 'perhaps alive')

    await workspace.run(['sync'])

    expect(left(workspace)).toEqual([
      '.copy.db.4712-0123456789ab.unfinished',
      `.other.db.${lock}.unfinished`,
      'copy.db',
      'copy.db.json',
    ])
  })

  it('at the same time as others leaves one whole file', async () => {
    const { workspace, copy } = await createScene()
    await workspace.run(['sync'])

    // In processes of their own: the locks by which SQLite knows the last one to leave do not part sessions of one process.
    const ends = await Promise.all([1, 2, 3].map(() => workspace.start(['sync', '--wait']).ended))

    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0])
    expect(left(workspace)).toEqual(['copy.db', 'copy.db.json'])
    expect(ask(copy, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  })
})

describe.concurrent('start with publish', () => {
  it('publishes after a walk, and again not before publishEvery', async () => {
    const { workspace, copy } = await createScene({ schedule: '* * * * * *', publishEvery: '1h' })

    const start = workspace.start(['start'])
    await start.log(published)
    const at = fs.statSync(copy).mtimeMs
    const runs = Number(workspace.value('SELECT count(*) FROM sync_runs'))
    while (Number(workspace.value('SELECT count(*) FROM sync_runs')) < runs + 2)
      await new Promise((resolve) => setTimeout(resolve, 50))
    start.kill('SIGTERM')
    const ended = await start.ended

    expect(ended.code).toBe(0)
    expect(ended.logs.filter(published)).toHaveLength(1)
    expect(fs.statSync(copy).mtimeMs).toBe(at)
  })

  it('publishes at its beginning what the one before it did not come to publish', async () => {
    const { workspace, configure, copy } = await createScene({ publish: null })
    await workspace.run(['sync'])
    configure({ publish: COPY })

    const start = workspace.start(['start'])
    await start.log(published)
    start.kill('SIGTERM')

    expect((await start.ended).code).toBe(0)
    expect(ask(copy, 'SELECT count(*) AS rows FROM orders')).toEqual([{ rows: 6 }])
  })

  it('publishes at its beginning what a refresh brought before it', async () => {
    const { list, workspace, configure, copy } = await createScene({ publishEvery: '1s' }, 12)
    await workspace.run(['sync'])
    configure({ publish: null })
    list.items.push(...orders(13).slice(12))
    await workspace.run(['sync', '--refresh'])
    configure()

    const start = workspace.start(['start'])
    await start.log(published)
    start.kill('SIGTERM')
    await start.ended

    expect(ask(copy, 'SELECT count(*) AS rows FROM orders')).toEqual([{ rows: 13 }])
  })
})

describe.concurrent('snapshot', () => {
  it('copies the mirror of the configuration, or another one, or a copy', async () => {
    const { workspace } = await createScene({ publish: null })
    await workspace.run(['sync'])
    const [one, two, three] = ['one.db', 'two.db', 'three.db'].map((name) => workspace.file(name)) as [
      string,
      string,
      string,
    ]

    const ends = [
      await workspace.run(['snapshot', one]),
      await workspace.run(['snapshot', 'two.db', '--database', workspace.mirror], {
        env: { ADMIN_MIRROR_CONFIG: '' },
      }),
      await workspace.run(['snapshot', three, '--database', one], { env: { ADMIN_MIRROR_CONFIG: '' } }),
    ]

    expect(ends.map(({ code, stdout }) => [code, stdout])).toEqual([
      [0, ''],
      [0, ''],
      [0, ''],
    ])
    for (const file of [one, two, three]) {
      expect(ask(file, 'SELECT count(*) AS lines FROM orders__lines')).toEqual([{ lines: 6 }])
      expect(ask(file, 'PRAGMA journal_mode')).toEqual([{ journal_mode: 'delete' }])
    }
    expect(fs.readdirSync(workspace.folder).filter((name) => /unfinished|json$/.test(name))).toEqual([])
  })

  it('replaces an earlier copy, keeps its mode, and touches no other file', async () => {
    const { workspace } = await createScene({ publish: null })
    await workspace.run(['sync'])
    const [copy, other] = [workspace.file('copy.db'), workspace.file('other.db')]
    await workspace.run(['snapshot', copy])
    fs.chmodSync(copy, 0o600)
    fs.writeFileSync(other, 'precious')

    const again = await workspace.run(['snapshot', copy])
    const refused = [
      await workspace.run(['snapshot', other]),
      await workspace.run(['snapshot', workspace.mirror]),
      await workspace.run(['snapshot', workspace.mirror, '--database', copy]),
    ]

    expect([again.code, fs.statSync(copy).mode & 0o777]).toEqual([0, 0o600])
    expect(refused.map(({ code }) => code)).toEqual([2, 2, 2])
    expect(fs.readFileSync(other, 'utf8')).toBe('precious')
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(6)
  })

  it.each([
    ['snapshot', 'absent/copy.db'],
    ['export', 'orders', '--format', 'csv', '--output', 'absent/orders.csv'],
  ])('and %s into a folder that is not there end with 2, and name it', async (...args) => {
    const { workspace } = await createScene({ publish: null })
    await workspace.run(['sync'])

    const { code, stderr } = await workspace.run(args)

    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`there is no folder ${workspace.file('absent')};`),
    ])
    expect(fs.existsSync(workspace.file('absent'))).toBe(false)
  })

  it('of no mirror ends with 4 and makes nothing', async () => {
    const { workspace } = await createScene()

    const { code, stderr } = await workspace.run(['snapshot', 'copy.db'])

    expect([code, stderr]).toEqual([4, expect.stringContaining('there is no mirror')])
    expect(fs.existsSync(workspace.file('copy.db'))).toBe(false)
  })

  it('cannot be synced into', async () => {
    const { workspace, configure } = await createScene({ publish: null })
    await workspace.run(['sync'])
    await workspace.run(['snapshot', 'copy.db'])
    configure({ database: 'copy.db' })

    const { code, stderr } = await workspace.run(['sync'])

    expect([code, stderr]).toEqual([4, expect.stringContaining('is a copy of a mirror')])
  })
})
