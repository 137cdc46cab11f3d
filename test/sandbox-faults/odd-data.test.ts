import { beforeAll, describe, expect, it } from 'vitest'
import { pageOf, serve } from '../cli/list-server.ts'
import { createWorkspace, organization } from '../cli/workspace.ts'
import { hasTerminal, onTerminal } from './on-terminal.ts'

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

const REJECTED: [json: string, why: string][] = [
  ['{"id":{"a":1}}', 'is an object'],
  ['{"id":[1]}', 'is a list'],
  ['{"id":true}', 'is true, neither text nor a number'],
  ['{"id":""}', 'is an empty text'],
  ['{"id":null}', 'is null'],
  ['{"__proto__":{"id":9}}', 'is missing'],
  ['{"id":"a\\u0000b"}', 'holds a NUL character'],
  ['{"id":"\\ud800"}', 'holds half of a surrogate pair'],
  [`{"id":"${'k'.repeat(1001)}"}`, 'is longer than 1,000 characters'],
  ['5', 'is no object'],
  ['"\\u001b[2J"', 'is no object'],
  ['null', 'is no object'],
  ['[]', 'is no object'],
]

const list = [...PLACED, ...REJECTED.map(([json]) => json)].map((json) => JSON.parse(json) as unknown)
const workspace = createWorkspace()

beforeAll(async () => {
  const server = await serve((asked) => pageOf(list, asked, { perPage: 3 }))
  workspace.configure({ baseUrl: server.url, organizations: [organization('acme', 1)] })
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
    expect(
      workspace.rows(`
        SELECT fieldproto, constructor__name, toString, hasOwnProperty, "a_b", "_", field, field_json, rowid, ID_2
        FROM (SELECT "field__proto__" AS fieldproto, * FROM orders)
        WHERE id IN ('1', '2')
      `),
    ).toHaveLength(2)
  })

  it('that have no usable key are kept, each with the reason', () => {
    const rejects = workspace.rows<{ json: string; reason: string }>(
      'SELECT json, reason FROM sync_rejects ORDER BY id',
    )

    expect(rejects).toEqual(
      REJECTED.map(([json, why]) => ({ json, reason: expect.stringContaining(why) as string })),
    )
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

  it.runIf(hasTerminal)('send a terminal nothing that it obeys', async () => {
    const commands = [
      ['query', 'SELECT * FROM orders', '--format', 'table'],
      ['query', 'SELECT * FROM orders', '--format', 'json'],
      ['query', 'SELECT * FROM orders', '--format', 'csv'],
      ['query', 'SELECT * FROM sync_rejects'],
      ['query', 'SELECT * FROM sync_columns', '--format', 'json'],
      ['export', 'orders', '--format', 'ndjson'],
      ['export', 'orders', '--format', 'csv'],
      ['status'],
      ['status', '--json'],
    ]

    for (const command of commands) {
      const shown = await onTerminal(command, workspace)
      expect([command, shown.length > 40]).toEqual([command, true])
      expect([command, obeyed(shown)]).toEqual([command, []])
    }
  })
})

/** What a terminal would not simply show, line ends apart. */
function obeyed(text: string): string[] {
  return (
    text
      .replaceAll('\r\n', '')
      .match(/.{0,20}[\p{Cc}\p{Cf}\p{Zl}\p{Zp}].{0,20}/gu)
      ?.map((found) => JSON.stringify(found)) ?? []
  )
}
