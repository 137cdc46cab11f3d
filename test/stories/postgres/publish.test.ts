import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from '../../helpers/list-server.ts'
import { ACME, onPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { createWorkspace, variable } from '../../helpers/workspace.ts'

const server = await openDatabase()

/** All of a file: what made it, and what is in it. */
function contentsOf(file: string): Record<string, unknown> {
  const reader = new Database(file, { readonly: true }).defaultSafeIntegers()
  try {
    const schema = reader
      .prepare("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite%' ORDER BY type, name")
      .all() as { type: string; name: string; sql: string }[]
    const rows = schema
      .filter(({ type }) => type === 'table')
      .map(({ name }) => [name, reader.prepare(`SELECT * FROM "${name}"`).raw().all()])
    const types = reader
      .prepare('SELECT DISTINCT typeof(total), typeof(id), typeof(lines) FROM orders')
      .raw()
      .all()
    const checks = ['integrity_check', 'journal_mode', 'application_id', 'user_version'].map((name) =>
      reader.pragma(name),
    )
    // Where a column was added later, the text of the declaration has other spaces.
    for (const one of schema) one.sql = one.sql.replaceAll(/\s+/g, ' ')
    return { schema, rows: Object.fromEntries(rows) as object, types, checks }
  } finally {
    reader.close()
  }
}

function numbersOf(file: string): object {
  const { created_at, current_at, duration_ms, contents, sha256, bytes, mirror, ...numbers } = JSON.parse(
    fs.readFileSync(`${file}.json`, 'utf8'),
  ) as Record<string, unknown>
  const types = [created_at, current_at, contents, sha256, bytes, duration_ms].map((value) => typeof value)
  expect(types).toEqual([...Array.from({ length: 4 }, () => 'string'), 'number', 'number'])
  // It stands elsewhere, and is the same one, since it was moved.
  expect(mirror).toEqual({ id: expect.any(String), place: expect.any(String) })
  return { ...numbers, mirror: (mirror as { id: string }).id }
}

describe.skipIf(server.missing !== null)('publish of a PostgreSQL mirror', () => {
  it('makes the file that a mirror in a file makes', async () => {
    let listed: unknown[] = [
      { id: 1, total: 1.5, note: 'a', lines: [{ sku: 'x', n: 1 }, { sku: 'y' }], customer: { email: 'a@b' } },
      { id: 2, total: 2, note: 7, big: 12345678901234567890n.toString(), lines: [] },
      { total: 4 },
      ...items(600).map((item) => ({ ...item, id: item.id + 10 })),
    ]
    const api = await serve((asked) => pageOf(listed, asked, { perPage: 100 }))
    const settings = {
      schedule: '0 0 1 1 *',
      refresh: false,
      publish: 'published/copy.db',
      publishEvery: '1s',
    }
    const file = createWorkspace({ baseUrl: api.url, organizations: [ACME], ...settings })
    expect(await file.run(['sync'])).toMatchObject({ code: 0 })
    listed = listed.map((item, at) => (at === 0 ? { ...(item as object), total: 9 } : item)).slice(0, 500)
    expect(await file.run(['sync', '--accept-removals'])).toMatchObject({ code: 0 })
    expect(await file.run(['sync', '--accept-removals'])).toMatchObject({ code: 0 })
    const { address, workspace, start, run } = onPostgres(server, api.url, settings)
    const { user, host, port, database, schema } = address
    const to = `postgres://${user}:${variable('DB_PASSWORD')}@${host}:${port}/${database}?schema=${schema}`
    expect(await run(['move', '--from', file.mirror, '--to', to])).toMatchObject({ code: 0 })
    const [made, expected] = [workspace, file].map(({ folder }) => path.join(folder, 'published/copy.db'))

    // Two of them at once: one makes it.
    const daemons = [start(['start']), start(['start'])]
    await Promise.any(daemons.map((daemon) => daemon.log(({ event }) => event === 'published')))
    for (const daemon of daemons) daemon.killAll('SIGTERM')
    await Promise.all(daemons.map(({ ended }) => ended))

    expect(contentsOf(made ?? '')).toEqual(contentsOf(expected ?? ''))
    expect(numbersOf(made ?? '')).toEqual(numbersOf(expected ?? ''))
    expect(fs.readdirSync(path.join(workspace.folder, 'published')).toSorted()).toEqual([
      'copy.db',
      'copy.db.json',
    ])
    const before = fs.statSync(made ?? '').ino
    /** By the file, and by what is written without it, in the same words. */
    async function expectFresh(): Promise<void> {
      const [job] = JSON.parse((await run(['status', '--json'])).stdout).jobs
      const { as_of, last_complete_at, fresh_as_of } = job
      const { jobs } = JSON.parse(fs.readFileSync(`${made}.json`, 'utf8'))
      expect(jobs).toEqual([expect.objectContaining({ as_of, last_complete_at, fresh_as_of })])
    }

    // A command publishes at its end, by rename, and sweeps what a killed one has left.
    const left = path.join(workspace.folder, 'published/.copy.db.mirror-x12345')
    fs.mkdirSync(left)
    fs.writeFileSync(path.join(left, 'mirror.db'), 'left')
    const eventsOf = async (...args: string[]) => (await run(args)).logs.map(({ event }) => event)
    expect(await eventsOf('sync')).toContain('published_freshness')
    expect(fs.statSync(made ?? '').ino).toBe(before)
    await expectFresh()
    await run(['rebuild'])
    expect(await eventsOf('sync')).toContain('published')
    expect(fs.statSync(made ?? '').ino).not.toBe(before)
    await expectFresh()
    expect(fs.existsSync(left)).toBe(false)
    const asked = await run([
      'query',
      'SELECT count(*) AS n FROM orders',
      '--database',
      made ?? '',
      '--format',
      'csv',
    ])
    expect(asked.stdout).toBe('n\n499\n')
  })
})
