import { beforeAll, describe, expect, it } from 'vitest'
import { OUTSIDE_READERS } from '../helpers/outside-readers.ts'
import { type Ended, startProgram } from '../helpers/processes.ts'
import { createWorkspace } from '../helpers/workspace.ts'

// What a stranger does first: serve the sandbox, sync it, look at the mirror; and sync once more.

interface Item {
  id: string | number
  [field: string]: unknown
}

interface List {
  organization: string
  collection: 'orders' | 'establishments'
  items: Item[]
  /** The pages' own text. */
  pages: string[]
}

const COLLECTIONS = ['orders', 'establishments'] as const

const workspace = createWorkspace(undefined, 'sandbox-mirror.db')
const { rows, value } = workspace
const lists: List[] = []
let first: Ended
let second: Ended
let contentAfterFirst: string

/** All rows of the tables that hold data, as one text. */
function content(): string {
  const tables = COLLECTIONS.flatMap((name) => [name, `${name}_raw`, `${name}_history`])
  const all = tables.map((table) => rows(`SELECT * FROM ${table} ORDER BY _organization_id, id`))
  return JSON.stringify([all, rows('SELECT * FROM sync_known_columns'), rows('SELECT * FROM organizations')])
}

async function readList(url: string, token: string, organization: string, collection: List['collection']) {
  const list: List = { organization, collection, items: [], pages: [] }
  const headers = {
    accept: 'application/json',
    authorization: `Bearer ${token}`,
    'x-service-organization': organization,
  }
  let next: string | null = `${url}/api/v1/admin/${collection}`
  while (next !== null) {
    const text: string = await (await fetch(next, { headers })).text()
    const body = JSON.parse(text) as { data: Item[]; links: { next: string | null } }
    list.pages.push(text)
    list.items.push(...body.data)
    next = body.links.next
  }
  return list
}

beforeAll(async () => {
  const options = '--orders 160 --establishments 30 --requests-per-minute 0 --write-config admin-mirror.yaml'
  const sandbox = startProgram(['sandbox', ...options.split(' ')], { cwd: workspace.folder })
  const { url, organizations } = JSON.parse(await sandbox.firstLine()) as {
    url: string
    organizations: { id: string; name: string; token: string }[]
  }
  for (const { id, token } of organizations) {
    for (const collection of COLLECTIONS) lists.push(await readList(url, token, id, collection))
  }

  first = await workspace.run(['sync', '--log-level', 'debug'])
  contentAfterFirst = content()
  second = await workspace.run(['sync'])
  sandbox.kill('SIGTERM')
  await sandbox.ended
})

describe('the first sync', () => {
  it('succeeds, and says on standard error alone what it did, an object a line', () => {
    expect(first).toMatchObject({ code: 0, stdout: '' })
    const lines = first.stderr.trimEnd().split('\n')
    expect(lines.length).toBeGreaterThan(4)
    expect(first.logs).toHaveLength(lines.length)
    for (const line of first.logs)
      expect(line).toMatchObject({ level: expect.any(String), msg: expect.any(String) })
  })

  it('tells after the first pages of a list how long it will take', () => {
    const estimates = first.logs.filter(({ msg }) => /^\d+ pages, about /.test(msg))

    expect(
      estimates
        .map(({ organization, collection, pages }) => `${organization} ${collection} ${String(pages)}`)
        .toSorted(),
    ).toEqual(['acme orders 7', 'globex orders 7'])
  })

  it('mirrors every item of every list, each exactly as it was sent', () => {
    expect(lists.map(({ items }) => items.length)).toEqual([160, 30, 160, 30])
    for (const { organization, collection, items, pages } of lists) {
      const sent = rows<{ id: string | number; _json: string }>(
        `SELECT id, _json FROM ${collection}_raw WHERE _organization_id = '${organization}'`,
      )
      const texts = new Map(sent.map(({ id, _json }) => [id, _json]))
      expect(sent).toHaveLength(items.length)
      // The texts of a page's items, put together again, are the page's own text.
      for (const page of pages) {
        const { data } = JSON.parse(page) as { data: Item[] }
        expect(page).toContain(`"data":[${data.map(({ id }) => texts.get(id)).join(',')}]`)
      }
    }
  })

  it('writes who is configured and what each run and walk did', () => {
    expect(rows('SELECT name, configured, held_since, held_reason FROM organizations ORDER BY name')).toEqual(
      [
        { name: 'acme', configured: 1, held_since: null, held_reason: null },
        { name: 'globex', configured: 1, held_since: null, held_reason: null },
      ],
    )
    expect(rows('SELECT * FROM sync_runs WHERE id <= 4')).toHaveLength(4)
    for (const run of rows('SELECT * FROM sync_runs WHERE id <= 4')) {
      // Any still list is asked for one of its pages again.
      const [pages, seen] = run.collection === 'orders' ? [8, 160] : [3, 30]
      expect(run).toMatchObject({
        status: 'succeeded',
        pages,
        requests: pages,
        rows_added: seen,
        error_code: null,
      })
      expect(rows(`SELECT * FROM sync_walks WHERE id = ${String(run.walk_id)}`)).toMatchObject([
        { kind: 'full', status: 'complete', rows_seen: seen, total: seen, passes: 1, coverage: 'steady' },
      ])
    }
    expect(value('SELECT count(*) FROM sync_rejects')).toBe(0)
  })
})

describe('a second sync of lists that stand still', () => {
  it('changes nothing but the record of runs and walks, and makes the lists fresher', () => {
    const firstEnd = value('SELECT max(finished_at) FROM sync_runs WHERE id <= 4')
    expect(second).toMatchObject({ code: 0, stdout: '' })
    expect(content()).toBe(contentAfterFirst)
    expect(value('SELECT count(*) FROM orders_history')).toBe(0)
    const sums =
      'SELECT count(*) AS runs, sum(rows_added + rows_changed) AS changed FROM sync_runs WHERE id > 4'
    expect(rows(sums)).toEqual([{ runs: 4, changed: 0 }])
    const status = rows('SELECT * FROM sync_status')
    expect(status).toHaveLength(4)
    for (const line of status)
      expect([line.as_of, line.last_run_at, firstEnd].map(String).toSorted().at(0)).toBe(firstEnd)
  })
})

describe('the mirror to other programs', () => {
  it.each(OUTSIDE_READERS)('opens in $name', ({ read }) => {
    const [counts] = read(
      workspace.mirror,
      `SELECT
        (SELECT integrity_check FROM pragma_integrity_check) AS integrity,
        (SELECT count(*) FROM orders) AS orders,
        (SELECT count(*) > 0 FROM orders__items WHERE quantity > 0) AS elements,
        (SELECT count(*) FROM sync_status) AS jobs`,
    )

    expect(counts).toEqual({ integrity: 'ok', orders: 320, elements: 1, jobs: 4 })
  })

  it('is in WAL mode, and its tables are STRICT', () => {
    expect(value('PRAGMA journal_mode')).toBe('wal')
    expect(
      rows(
        `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict AND name NOT GLOB 'sqlite_*'`,
      ),
    ).toEqual([])
  })
})
