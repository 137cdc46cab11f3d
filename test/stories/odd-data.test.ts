import { beforeAll, describe, expect, it } from 'vitest'
import { hasTerminal, onTerminal } from '../helpers/on-terminal.ts'
import { ACME, createScene } from '../helpers/scene.ts'
import type { Workspace } from '../helpers/workspace.ts'

// Items that are valid JSON, and traps: names that mean something to JavaScript, SQLite or ourselves, characters that a
// terminal obeys, keys that are none.

const PLACED = [
  '{"id":1,"__proto__":{"polluted":1},"constructor":{"name":"x"},"toString":"y","hasOwnProperty":1,"then":2}',
  '{"id":2,"a\\u0000b":1,"\\ud800":2,"":3,"_json":"mine","_organization_id":"x","rowid":7,"ID":8,"\\"; DROP TABLE orders; --":9}',
  '{"id":3,"text":"NUL \\u0000 half \\ud83d escape \\u001b[2J here \u009b2J and \u202e there\u2028"}',
  `{"id":4,"deep":${'{"a":'.repeat(480)}1${'}'.repeat(480)},"lists":${'['.repeat(480)}1${']'.repeat(480)}}`,
  '{"id":5,"items":[{"__proto__":1,"a\\u0000":"\u009b2J","sku":"x","constructor":[1]},7,null,[]]}',
  `{"id":6,"${'long'.repeat(5000)}":1}`,
  '{"id":"7\u009b","__proto__":1}',
]

/** What else makes a key unusable: test/sync/items.test.ts. */
const REJECTED: [json: string, why: string][] = [
  ['{"id":{"a":1}}', 'is an object'],
  ['{"__proto__":{"id":9}}', 'is missing'],
  ['5', 'is not an object'],
  ['"\\u001b[2J"', 'is not an object'],
  ['null', 'is not an object'],
  ['[]', 'is not an object'],
]

const list = [...PLACED, ...REJECTED.map(([json]) => json)].map((json) => JSON.parse(json) as unknown)
const PER_PAGE = 3
let workspace: Workspace

beforeAll(async () => {
  ;({ workspace } = await createScene({ list, perPage: PER_PAGE }))
  const sync = await workspace.run(['sync', '--log-level', 'trace'])
  expect(sync.code).toBe(0)
})

describe('odd items', () => {
  it('are mirrored as they were sent', () => {
    const rows = workspace.rows<{ _json: string }>('SELECT _json FROM orders_raw ORDER BY length(id), id')

    expect(rows.map(({ _json: json }) => json)).toEqual(
      PLACED.map((json) => JSON.stringify(JSON.parse(json))),
    )
    expect(workspace.rows('SELECT coverage, rows_seen FROM sync_walks')).toEqual([
      { coverage: 'steady', rows_seen: list.length },
    ])
  })

  it('have columns of their own, whatever they are called', () => {
    // SQLite has a column rowid in every table.
    expect(workspace.rows('SELECT rowid_2, ID_2, field, field_json FROM orders WHERE id = 2')).toEqual([
      { rowid_2: 7, ID_2: 8, field: 3, field_json: 'mine' },
    ])
  })

  it('that have no usable key are kept, each with the reason', () => {
    const rejects = workspace.rows('SELECT organization_id, collection, page, json, reason FROM sync_rejects')
    const place = { organization_id: ACME.id, collection: 'orders' }

    expect(rejects).toHaveLength(REJECTED.length)
    for (const [index, [json, why]] of REJECTED.entries()) {
      const page = Math.floor((PLACED.length + index) / PER_PAGE) + 1
      expect(rejects).toContainEqual({ ...place, page, json, reason: expect.stringContaining(why) })
    }
  })

  it('have views of their lists that can be read', () => {
    expect(workspace.rows('SELECT _parent_id, _index, sku FROM orders__items')).toEqual([
      { _parent_id: '5', _index: 0, sku: 'x' },
    ])
  })

  it('are the same the next time', async () => {
    const sync = await workspace.run(['sync', '--log-level', 'trace'])

    expect(sync.code).toBe(0)
    expect(workspace.rows('SELECT rows_added, rows_changed FROM sync_runs ORDER BY id DESC LIMIT 1')).toEqual(
      [{ rows_added: 0, rows_changed: 0 }],
    )
    expect(workspace.value('SELECT count(*) FROM sync_rejects')).toBe(REJECTED.length)
  })

  const TABLE = ['query', 'SELECT * FROM orders', '--format', 'table']

  it.each([
    TABLE,
    ['query', 'SELECT * FROM orders', '--format', 'json'],
    ['query', 'SELECT * FROM orders', '--format', 'csv'],
    ['query', 'SELECT * FROM sync_rejects'],
    ['query', 'SELECT * FROM sync_columns', '--format', 'json'],
    ['export', 'orders', '--format', 'ndjson'],
    ['export', 'orders', '--format', 'csv'],
    ['status'],
    ['status', '--json'],
  ])('send a terminal nothing that it obeys: %s', async (...command) => {
    expectHarmless((await workspace.run(command, { columns: 80 })).stdout)
  })

  it.runIf(hasTerminal)('send none to a real one', async () => {
    expectHarmless(await onTerminal(TABLE, workspace))
  })
})

function expectHarmless(shown: string): void {
  expect(shown.length).toBeGreaterThan(40)
  expect(obeyed(shown)).toEqual([])
}

/** What a terminal would not simply show, line ends apart. */
function obeyed(text: string): string[] {
  return (
    text
      .replaceAll(/\r?\n/g, '')
      .match(/.{0,20}[\p{Cc}\p{Cf}\p{Zl}\p{Zp}].{0,20}/gu)
      ?.map((found) => JSON.stringify(found)) ?? []
  )
}
