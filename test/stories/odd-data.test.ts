import { beforeAll, expect, it } from 'vitest'
import { createScene } from '../helpers/scene.ts'
import type { Workspace } from '../helpers/workspace.ts'

// Items that are valid JSON, and traps: names that mean something to JavaScript, SQLite or ourselves, characters that a
// terminal obeys, keys that are none. What else makes a key unusable: test/sync/items.test.ts; fields of any name: test/store/contract-columns.ts.

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

it('odd items are mirrored as they were sent, once, or kept as rejects', () => {
  const rows = workspace.rows<{ _json: string }>('SELECT _json FROM orders_raw ORDER BY length(id), id')
  expect(rows.map(({ _json: json }) => json)).toEqual(PLACED.map((json) => JSON.stringify(JSON.parse(json))))
  const rejects = workspace.rows<{ json: string }>('SELECT json FROM sync_rejects')
  expect(rejects.map(({ json }) => json).toSorted()).toEqual(REJECTED.toSorted())
  expect(workspace.rows('SELECT coverage, rows_seen FROM sync_walks')).toEqual(
    [1, 2].map(() => ({ coverage: 'steady', rows_seen: list.length })),
  )
  expect(workspace.value('SELECT max(rows_added + rows_changed) FROM sync_runs WHERE id > 1')).toBe(0)
})

it.each([
  'query|SELECT * FROM orders|--format|table',
  'query|SELECT * FROM orders|--format|json',
  'query|SELECT * FROM sync_rejects',
  'query|SELECT * FROM sync_columns|--format|json',
  'export|orders|--format|ndjson',
  'export|orders|--format|csv',
  'status',
  'status|--json',
])('a terminal is sent nothing that it obeys, line ends apart: %s', async (line) => {
  const { stdout } = await workspace.run(line.split('|'), { columns: 80 })

  expect(stdout.length).toBeGreaterThan(40)
  expect(stdout.replaceAll(/\r?\n/g, '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
})
