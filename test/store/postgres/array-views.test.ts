import { describe, expect, it } from 'vitest'
import { newSchema, openDatabase } from '../../helpers/postgres.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'
import { begin } from '../contract.ts'

const server = await openDatabase()
if (server.missing !== null) console.warn(server.missing)

describe.skipIf(server.missing !== null)('the view of an array', () => {
  it('can be read whatever one item holds, in a parallel plan too', async () => {
    const mirror = await openPostgresMirror(newSchema(server))
    const open = await begin(mirror.store)
    await open.page('{"id":1,"items":[{"whole":1,"real":0.5,"text":"a"}]}')
    // Texts, not lists: what is in them was never looked at.
    const hostile = [
      '['.repeat(100_000),
      '[{"whole":1e30}]',
      '[{"whole":1e200000}]',
      '[{"real":1e400}]',
      '[{"text":"\\u0000"}]',
      '[{"text":"\\ud800"}]',
      '[1,',
    ]
    await open.page(...hostile.map((items, index) => JSON.stringify({ id: index + 2, items })))
    // Lists that are allowed to hold anything. The fields of those in `odd` have their types before, and some of them another one here.
    await open.page(
      '{"id":20,"items":[{"whole":2,"text":"b\\u0000c"},{"text":7}],"odd":[{"n":1,"r":0.5,"b":true}]}',
    )
    const odd = [
      '[{"n":1e30,"r":1e400,"b":1}]',
      '[{"n":1e200000,"r":-1e400,"b":"x"}]',
      `[{"n":${'9'.repeat(20_000)},"r":1e-400}]`,
      `[{"n":${'9'.repeat(140_000)}}, {"b":"\\u0e12345 1e99999"}]`,
      `[{"n":-0e0,"deep":${'['.repeat(2000)}${']'.repeat(2000)}}]`,
      '[null,[[]],7,"\\u0000",{"\\u0000":"\\ud800","n":null}]',
    ]
    await open.page(...odd.map((items, index) => `{"id":${index + 30},"odd":${items}}`))
    for (const setting of ['parallel_setup_cost', 'parallel_tuple_cost', 'min_parallel_table_scan_size'])
      await mirror.rows(`SET ${setting} = 0`)
    // Forces a plan of many processes wherever the server allows it; PostgreSQL 15 has it by another name.
    const [forced] = await mirror.rows(
      "SELECT name FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode')",
    )
    await mirror.rows(`SET ${String(forced?.name)} = on`)

    const rows = await mirror.rows(
      'SELECT _parent_id::int AS id, whole::int, "real", "text" FROM orders__items ORDER BY 1, _index',
    )

    expect(rows.filter(({ id }) => id === 1 || id === 20)).toEqual([
      { id: 1, whole: 1, real: 0.5, text: 'a' },
      { id: 20, whole: 2, real: null, text: 'b\\u0000c' },
      { id: 20, whole: null, real: null, text: '7' },
    ])
    expect(rows.filter(({ whole }) => typeof whole === 'number' && whole > 2)).toEqual([])
    expect(await mirror.rows('SELECT count(*)::int FROM orders__items')).toEqual([{ count: rows.length }])
    expect(
      await mirror.rows(
        'SELECT _parent_id::int AS id, _index::int, length(n) AS n, r, b FROM orders__odd ORDER BY 1, 2',
      ),
    ).toEqual([
      { id: 20, _index: 0, n: 1, r: '0.5', b: 'true' },
      { id: 30, _index: 0, n: 4, r: '1e400', b: '1' },
      { id: 31, _index: 0, n: 8, r: '-1e400', b: 'x' },
      { id: 32, _index: 0, n: 20_000, r: '1e-400', b: null },
      { id: 33, _index: 0, n: 140_000, r: null, b: null },
      { id: 33, _index: 1, n: null, r: null, b: '\u0e12345 1e99999' },
      { id: 34, _index: 0, n: 4, r: null, b: null },
      { id: 35, _index: 4, n: null, r: null, b: null },
    ])
  })
})
