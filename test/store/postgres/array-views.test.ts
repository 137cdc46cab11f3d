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
    // Lists that are allowed to hold anything.
    await open.page('{"id":20,"items":[{"whole":2,"text":"b\\u0000c"},{"text":7}]}')
    for (const setting of ['parallel_setup_cost', 'parallel_tuple_cost', 'min_parallel_table_scan_size'])
      await mirror.rows(`SET ${setting} = 0`)

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
  })
})
