import { beforeAll, describe, expect, it } from 'vitest'
import { createScene } from '../helpers/scene.ts'
import type { Workspace } from '../helpers/workspace.ts'
import { NAMES } from '../store/names.ts'

// Items that are valid JSON, and traps: names that mean something to JavaScript, SQLite or ourselves, characters that a
// terminal obeys, keys that are none. What else makes a key unusable: test/sync/items.test.ts.

const PLACED = [
  '{"id":1,"__proto__":{"polluted":1},"constructor":{"name":"x"},"toString":"y","hasOwnProperty":1,"then":2}',
  '{"id":2,"a\\u0000b":1,"\\ud800":2,"":3,"_json":"mine","_organization_id":"x","rowid":7,"ID":8,"\\"; DROP TABLE orders; --":9}',
  '{"id":3,"text":"NUL \\u0000 half \\ud83d escape \\u001b[2J here \u009b2J and \u202e there\u2028"}',
  `{"id":4,"deep":${'{"a":'.repeat(480)}1${'}'.repeat(480)},"lists":${'['.repeat(480)}1${']'.repeat(480)}}`,
  '{"id":5,"items":[{"__proto__":1,"a\\u0000":"\u009b2J","sku":"x","constructor":[1]},7,null,[]]}',
  `{"id":6,"${'long'.repeat(5000)}":1}`,
  '{"id":"7\u009b","__proto__":1}',
]
const REJECTED = ['{"id":{"a":1}}', '{"__proto__":{"id":9}}', '5', '"\\u001b[2J"', 'null', '[]']
const list = [...PLACED, ...REJECTED].map((json) => JSON.parse(json) as unknown)

let workspace: Workspace

beforeAll(async () => {
  ;({ workspace } = await createScene({ list, perPage: 3 }))
  for (const _ of [1, 2]) expect((await workspace.run(['sync', '--log-level', 'trace'])).code).toBe(0)
})

describe('odd items', () => {
  it('are mirrored as they were sent, once, or kept as rejects', () => {
    const rows = workspace.rows<{ _json: string }>('SELECT _json FROM orders_raw ORDER BY length(id), id')
    expect(rows.map(({ _json: json }) => json)).toEqual(
      PLACED.map((json) => JSON.stringify(JSON.parse(json))),
    )
    const rejects = workspace.rows<{ json: string }>('SELECT json FROM sync_rejects')
    expect(rejects.map(({ json }) => json).toSorted()).toEqual(REJECTED.toSorted())
    expect(workspace.rows('SELECT coverage, rows_seen FROM sync_walks')).toEqual(
      [1, 2].map(() => ({ coverage: 'steady', rows_seen: list.length })),
    )
    expect(workspace.value('SELECT max(rows_added + rows_changed) FROM sync_runs WHERE id > 1')).toBe(0)
  })

  it('have columns of their own, whatever they are called, and views of their lists', () => {
    // SQLite has a column rowid in every table.
    expect(workspace.rows('SELECT rowid_2, ID_2, field, field_json FROM orders WHERE id = 2')).toEqual([
      { rowid_2: 7, ID_2: 8, field: 3, field_json: 'mine' },
    ])
    expect(workspace.rows('SELECT _parent_id, _index, sku FROM orders__items')).toEqual([
      { _parent_id: '5', _index: 0, sku: 'x' },
    ])
  })

  it.each([
    ['query', 'SELECT * FROM orders', '--format', 'table'],
    ['query', 'SELECT * FROM orders', '--format', 'json'],
    ['query', 'SELECT * FROM sync_rejects'],
    ['query', 'SELECT * FROM sync_columns', '--format', 'json'],
    ['export', 'orders', '--format', 'ndjson'],
    ['export', 'orders', '--format', 'csv'],
    ['status'],
    ['status', '--json'],
  ])('send a terminal nothing that it obeys: %s', async (...command) => {
    expectHarmless((await workspace.run(command, { columns: 80 })).stdout)
  })
})

it('fields of any name come out of the mirror and the published file, by query and export', async () => {
  const names = NAMES.filter((name) => name !== 'lines')
  const from = (first: number) => Object.fromEntries(names.map((name, index) => [name, first + index]))
  const item = { ...from(1000), id: 1, lines: [from(2000)] }
  const mirror = (await createScene({ list: [item], settings: { publish: 'published.db' } })).workspace
  expect((await mirror.run(['sync'])).code).toBe(0)

  for (const file of ['mirror.db', 'published.db']) {
    const printed = async (...args: string[]) => {
      const { code, stdout, stderr } = await mirror.run([...args, '--database', file])
      expect([args, code, stderr]).toEqual([args, 0, ''])
      return stdout
    }
    const valuesOf = async (table: string, first: number) => {
      const [row] = JSON.parse(
        await printed('query', `SELECT * FROM ${table}`, '--format', 'json'),
      ) as object[]
      return Object.values(row ?? {}).filter((value) => value >= first && value < first + names.length)
    }
    expect(await valuesOf('orders', 1000)).toHaveLength(names.length)
    expect(await valuesOf('orders__lines', 2000)).toHaveLength(names.length)
    expect(JSON.parse(await printed('export', 'orders', '--format', 'ndjson'))).toEqual(item)
    const csv = await printed('export', 'orders', '--format', 'csv')
    for (const value of Object.values(from(1000))) expect(csv).toContain(`,${value}`)
    await printed('query', 'SELECT * FROM orders', '--format', 'parquet')
  }
})

/** That a terminal would simply show all of it, line ends apart. */
function expectHarmless(shown: string): void {
  expect(shown.length).toBeGreaterThan(40)
  expect(shown.replaceAll(/\r?\n/g, '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
}
