import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect } from 'vitest'
import { OUTSIDE_READERS } from '../helpers/outside-readers.ts'
import { type Ended, type LogLine, ownChildren } from '../helpers/processes.ts'
import { createScene, EVERY_SECOND, NEVER, type Scene, sceneTests } from '../helpers/scene.ts'
import type { Workspace } from '../helpers/workspace.ts'

const it = sceneTests()

// What the published file and a snapshot hold, and who can read them. When a file is made: test/cli/publisher.test.ts; where:
// test/store/sqlite/publish.

const COPY = 'published/copy.db'
const published = ({ msg }: LogLine) => msg === 'published'
const publishing = () => ownChildren('publish-child')

const orders = (count: number, value = 1) =>
  Array.from({ length: count }, (_, index) => ({
    id: index + 1,
    value,
    customer_id: index % 3,
    placed_at: `2026-01-0${(index % 9) + 1}T10:00:00Z`,
    lines: [{ sku: `S-${index % 2}`, quantity: 2, name: 'x' }],
  }))

function ask(file: string, sql: string): Record<string, unknown>[] {
  const connection = new Database(file, { readonly: true })
  try {
    return connection.prepare(sql).all() as Record<string, unknown>[]
  } finally {
    connection.close()
  }
}

function left({ folder }: Workspace): string[] {
  return fs.readdirSync(path.join(folder, 'published')).toSorted()
}

const sorted = (rows: object[]) => rows.map((row) => JSON.stringify(row)).toSorted()

/** Published twice, with a change between. */
let scene: Scene
let copy: string
let last: Ended

beforeAll(async () => {
  scene = await createScene({ list: orders(6), settings: { schedule: NEVER, publish: COPY } })
  copy = scene.workspace.file(COPY)
  await scene.workspace.run(['sync'])
  const reader = new Database(copy, { readonly: true })
  const values = reader.prepare('SELECT DISTINCT value FROM orders').pluck()
  expect(values.all()).toEqual([1])
  fs.chmodSync(copy, 0o644)
  scene.api.list = orders(6, 2)
  last = await scene.workspace.run(['sync'])
  // Who has the old file open keeps it.
  expect(values.all()).toEqual([1])
  reader.close()
})

describe('the published file', () => {
  it('is one file, with its numbers beside it', () => {
    const { workspace } = scene
    const line = last.logs.find(published)
    const numbers = JSON.parse(fs.readFileSync(`${copy}.json`, 'utf8'))
    const { size } = fs.statSync(copy)

    expect(last.code).toBe(0)
    expect(line).toMatchObject({ level: 'info', bytes: size })
    expect(line?.rows).toBe(Object.values<number>(numbers.rows).reduce((sum, rows) => sum + rows, 0))
    expect(numbers).toMatchObject({
      rows: { orders: 6, orders_raw: 6, orders__lines: 6, orders_changes: 12, orders_history: 6 },
      sha256: createHash('sha256').update(fs.readFileSync(copy)).digest('hex'),
      jobs: [{ organization: 'acme', collection: 'orders', fresh_as_of: expect.any(String) }],
    })
    expect(numbers.jobs[0].as_of).toBe(workspace.value('SELECT as_of FROM sync_status'))
    expect([copy, `${copy}.json`].map((file) => fs.statSync(file).mode & 0o777)).toEqual([0o644, 0o644])
    expect(left(workspace)).toEqual(['copy.db', 'copy.db.json'])
  })

  it('holds the same rows under the same names, and views as tables', () => {
    const names = ['', '_raw', '_history', '__lines', '_changes'].map((end) => `orders${end}`)
    for (const name of [...names, 'sync_status', 'sync_columns']) {
      const [ours, theirs] = [
        scene.workspace.rows(`SELECT * FROM ${name}`),
        ask(copy, `SELECT * FROM ${name}`),
      ]
      expect(ours.length).toBeGreaterThan(0)
      const shown = Object.keys(theirs[0] ?? {})
      const asShown = ours.map((row) => Object.fromEntries(shown.map((column) => [column, row[column]])))
      expect(sorted(theirs)).toEqual(sorted(asShown))
      expect(ask(copy, `SELECT type FROM sqlite_schema WHERE name = '${name}'`)).toEqual([{ type: 'table' }])
    }
  })

  it('has none of the workings of the program in it', () => {
    const schema = ask(copy, 'SELECT sql FROM sqlite_schema').map(({ sql }) => String(sql))
    const secrets = scene.workspace.rows<{ value: string }>(
      `SELECT last_fingerprint AS value FROM organizations UNION ALL SELECT value FROM sync_settings WHERE name LIKE '%salt%'`,
    )
    const bytes = fs.readFileSync(copy, 'latin1')

    expect(schema.join('\n')).not.toMatch(
      /fingerprint|sync_gates|sync_settings|sync_pages|sync_jobs|sync_missing|account|owner/,
    )
    expect(secrets.length).toBeGreaterThan(0)
    for (const { value } of secrets) expect(bytes).not.toContain(value)
  })

  it.for(OUTSIDE_READERS)('is opened by $name in a folder that nobody may write', ({ read }) => {
    fs.chmodSync(path.dirname(copy), 0o555)
    try {
      expect(read(copy, 'PRAGMA journal_mode')).toEqual([{ journal_mode: 'delete' }])
      expect(read(copy, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
      expect(read(copy, 'SELECT count(*) AS lines FROM orders__lines')).toEqual([{ lines: 6 }])
    } finally {
      fs.chmodSync(path.dirname(copy), 0o755)
    }
  })

  it('is as fresh as the numbers beside it say, if these are about it', async () => {
    const { workspace } = scene
    const own = workspace.value('SELECT as_of FROM sync_status')
    const { ino } = fs.statSync(copy)
    // Nothing has changed but how fresh the list is.
    const { logs } = await workspace.run(['sync'])
    const fresh = workspace.value('SELECT fresh_as_of FROM sync_status')
    const numbers = fs.readFileSync(`${copy}.json`, 'utf8')
    const status = async (file = copy) => {
      const { stdout } = await workspace.run(['status', '--json', '--database', file])
      return JSON.parse(stdout).jobs[0]
    }

    expect(logs).toContainEqual(expect.objectContaining({ event: 'published_freshness', level: 'info' }))
    expect(fs.statSync(copy).ino).toBe(ino)
    expect(await status()).toMatchObject({ as_of: fresh, fresh_as_of: fresh })
    // Copied elsewhere together.
    for (const end of ['', '.json']) fs.copyFileSync(copy + end, workspace.file(`elsewhere.db${end}`))
    expect(await status('elsewhere.db')).toMatchObject({ as_of: fresh })

    const old = numbers.replaceAll(String(fresh), '2020-01-01T00:00:00.000Z')
    fs.writeFileSync(`${copy}.json`, old)
    const stale = await workspace.run(['status', '--database', copy, '--fresh', '1h', '--max-age', '100d'])
    expect([stale.code, (await status()).as_of]).toEqual([1, '2020-01-01T00:00:00.000Z'])

    for (const other of [old.replace(/"sha256": "\w{4}/, '"sha256": "0000'), '{}', 'no JSON']) {
      fs.writeFileSync(`${copy}.json`, other)
      expect((await status()).as_of).toBe(own)
    }
    fs.writeFileSync(`${copy}.json`, numbers)
  })
})

it('a service whose publishing process is killed warns, reads on, and publishes later', async () => {
  const settings = { schedule: EVERY_SECOND, publish: COPY, publishEvery: '1s' }
  const { workspace } = await createScene({ list: orders(6), settings })
  const daemon = workspace.startHere(['start'])
  while (publishing().length === 0) await setImmediate()
  for (const pid of publishing()) process.kill(pid, 'SIGKILL')
  const warning = await daemon.log(({ event }) => event === 'publish_failed')
  const isLeft = fs.existsSync(workspace.file(COPY))
  const runs = Number(workspace.value("SELECT count(*) FROM sync_runs WHERE status = 'succeeded'"))
  await daemon.logs(({ event }) => event === 'run_finished', runs + 1)
  await daemon.log(published)
  daemon.kill('SIGTERM')
  const { code, logs } = await daemon.ended

  expect(warning).toMatchObject({ level: 'warn', reason: expect.stringContaining('was ended (SIGKILL)') })
  expect([code, isLeft, left(workspace)]).toEqual([0, false, ['copy.db', 'copy.db.json']])
  expect(logs.filter(({ level }) => level === 'error')).toEqual([])
})

describe('snapshot', () => {
  it('copies the mirror of the configuration, or another one, or a copy; it replaces a copy, and keeps its mode', async ({
    synced: { workspace },
  }) => {
    const { file, run } = workspace
    const without = { env: { ADMIN_MIRROR_CONFIG: '' } }
    expect(await run(['snapshot', 'one.db'])).toMatchObject({ code: 0, stdout: '' })
    fs.chmodSync(file('one.db'), 0o600)
    expect((await run(['snapshot', 'two.db', '--database', workspace.mirror], without)).code).toBe(0)
    expect((await run(['snapshot', 'one.db', '--database', 'two.db'], without)).code).toBe(0)

    for (const name of ['one.db', 'two.db']) {
      expect(ask(file(name), 'SELECT count(*) AS rows FROM orders')).toEqual([{ rows: 4 }])
      expect(ask(file(name), 'PRAGMA journal_mode')).toEqual([{ journal_mode: 'delete' }])
    }
    expect(fs.statSync(file('one.db')).mode & 0o777).toBe(0o600)
    expect(fs.readdirSync(workspace.folder).filter((name) => /unfinished|json$/.test(name))).toEqual([])
  })

  it('touches no file that is no copy, needs a folder, and is not synced into', async ({ synced }) => {
    const { file, run, mirror, value, folder } = synced.workspace
    fs.writeFileSync(file('other.db'), 'precious')
    await run(['snapshot', 'copy.db'])

    for (const args of [['other.db'], [mirror], [mirror, '--database', file('copy.db')], ['absent/copy.db']])
      expect((await run(['snapshot', ...args])).code, args.join(' ')).toBe(2)
    expect((await run(['snapshot', 'absent/copy.db'])).stderr).toContain(
      `there is no folder ${file('absent')};`,
    )
    expect(fs.readFileSync(file('other.db'), 'utf8')).toBe('precious')
    expect(value('SELECT count(*) FROM orders')).toBe(4)
    expect(fs.readdirSync(folder)).not.toContain('absent')

    synced.configure({ database: 'copy.db' })
    expect(await run(['sync'])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('is a copy of a mirror'),
    })
  })
})
