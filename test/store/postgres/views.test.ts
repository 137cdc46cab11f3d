import { beforeEach, describe, expect, it } from 'vitest'
import { openPostgresMirror, type PostgresMirror } from '../../helpers/postgres-mirror.ts'
import { emptySchema, openDatabase } from '../../helpers/postgres.ts'
import { begin, type OpenRun } from '../stage.ts'

const server = await openDatabase()

/** An object with so many fields. */
const wide = (count: number, value: (index: number) => unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, value(index)]))

describe.skipIf(server.missing !== null)('what PostgreSQL has limits for', { timeout: 60_000 }, () => {
  let mirror: PostgresMirror
  let page: OpenRun['page']
  beforeEach(async () => {
    mirror = await openPostgresMirror(await emptySchema(server))
    page = (await begin(mirror)).page
  })

  /** Rows as texts. */
  const linesOf = async (sql: string) => (await mirror.rows(sql)).map((row) => Object.values(row).join())

  it('a view of an array can be read whatever one item holds, in a parallel plan too', async () => {
    await page('{"id":1,"items":[{"whole":1,"real":0.5,"text":"a"}]}')
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
    await page(...hostile.map((items, index) => JSON.stringify({ id: index + 2, items })))
    // Lists that are allowed to hold anything. The fields of those in `odd` have their types before, and some of them another one here.
    await page(
      '{"id":20,"items":[{"whole":2,"text":"b\\u0000c"},{"text":7}],"odd":[{"n":1,"r":0.5,"b":true}]}',
    )
    const odd = [
      '[{"n":1e30,"r":1e400,"b":1}]',
      '[{"n":1e200000,"r":-1e400,"b":"x"}]',
      `[{"n":${'9'.repeat(20_000)},"r":1e-400}]`,
      `[{"n":${'9'.repeat(140_000)}}, {"b":"\\u0e12345 1e99999"}]`,
      `[{"n":-0e0,"deep":${'['.repeat(490)}${']'.repeat(490)}}]`,
      '[null,[[]],7,"\\u0000",{"\\u0000":"\\ud800","n":null}]',
    ]
    await page(...odd.map((items, index) => `{"id":${index + 30},"odd":${items}}`))
    for (const setting of ['parallel_setup_cost', 'parallel_tuple_cost', 'min_parallel_table_scan_size'])
      await mirror.rows(`SET ${setting} = 0`)
    // Forces a plan of many processes wherever the server allows it; PostgreSQL 15 has it by another name.
    const [forced] = await mirror.rows(
      "SELECT name FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode')",
    )
    await mirror.rows(`SET ${String(forced?.name)} = on`)

    // A text that is JSON of a list counts as one.
    expect(
      await linesOf('SELECT _parent_id, whole, "real", "text" FROM orders__items ORDER BY 1, _index'),
    ).toEqual(['1,1,0.5,a', '3,,,', '4,,,', '5,,,', '20,2,,b\\u0000c', '20,,,7'])
    const values = 'SELECT _parent_id, _index, n, r, b FROM orders__odd ORDER BY 1, 2'
    expect((await linesOf(values)).join(' ')).toBe(
      '20,0,1,0.5,1 30,0,,,1 31,0,,, 32,0,,, 33,0,,, 33,1,,, 34,0,0,, 35,4,,,',
    )
  })

  it.each<[string, (index: number) => unknown]>([
    ['short texts', () => 'exactly 23 characters..'],
    ['texts that are compressed to fewer bytes', () => 'a'.repeat(900)],
    [
      'long texts',
      (index) =>
        `${index} `.repeat(3) + Array.from({ length: 90 }, (_, at) => (at * 7919 * (index + 3)) % 997).join(),
    ],
  ])('of an item, %s beyond a row are in _json only', async (_what, value) => {
    await page(JSON.stringify({ id: 1, ...wide(398, value) }), JSON.stringify({ id: 2, f0: value(0) }))

    expect(await linesOf('SELECT id FROM orders ORDER BY 1')).toEqual(['1', '2'])
    const [row] = await mirror.rows('SELECT * FROM orders WHERE id = 1')
    const [raw] = await mirror.rows('SELECT _json FROM orders_raw WHERE id = 1')
    const held = Object.entries(row ?? {}).filter(([name, cell]) => /^f\d/.test(name) && cell !== null)
    expect(held).toHaveLength(279)
    expect(Object.keys(JSON.parse(String(raw?._json)) as object)).toHaveLength(399)
  })

  it('views of arrays whose names are cut alike are numbered', async () => {
    const name = 'x'.repeat(60)
    const item = { id: 1, [`${name}a`]: [{ one: 1 }], [`${name}b`]: [{ two: 2 }] }
    for (const elements of [[{ two: 2 }], [{ two: 2, more: 3 }]])
      await page(JSON.stringify({ ...item, [`${name}b`]: elements }))

    const view = `orders__${name}`.slice(0, 63)
    expect(await linesOf(`SELECT one FROM ${view}`)).toEqual(['1'])
    expect(await linesOf(`SELECT two, more FROM ${view.slice(0, 61)}_2`)).toEqual(['2,3'])
  })
})
