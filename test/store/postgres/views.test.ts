import { beforeEach, describe, expect, it } from 'vitest'
import { jobOf } from '../../helpers/jobs.ts'
import { emptySchema } from '../../helpers/kept-schema.ts'
import { newSchema, openDatabase } from '../../helpers/postgres.ts'
import { openPostgresMirror, type PostgresMirror } from '../../helpers/postgres-mirror.ts'
import { runOnce } from '../../helpers/run-once.ts'
import { scriptedList } from '../../helpers/scripted-list.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'
import { begin } from '../stage.ts'

const server = await openDatabase()

const none = { n: null, r: null, b: null }

describe.skipIf(server.missing !== null)('the view of an array', () => {
  it('can be read whatever one item holds, in a parallel plan too', async () => {
    const mirror = await openPostgresMirror(newSchema(server))
    const open = await begin(mirror)
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

    expect(rows).toEqual([
      { id: 1, whole: 1, real: 0.5, text: 'a' },
      // A text that is JSON of a list counts as one.
      { id: 3, whole: null, real: null, text: null },
      { id: 4, whole: null, real: null, text: null },
      { id: 5, whole: null, real: null, text: null },
      { id: 20, whole: 2, real: null, text: 'b\\u0000c' },
      { id: 20, whole: null, real: null, text: '7' },
    ])
    expect(
      await mirror.rows(
        'SELECT _parent_id::int AS id, _index::int, n::int, r, b::int FROM orders__odd ORDER BY 1, 2',
      ),
    ).toEqual([
      { id: 20, _index: 0, ...none, n: 1, r: 0.5, b: 1 },
      { id: 30, _index: 0, ...none, b: 1 },
      { id: 31, _index: 0, ...none },
      { id: 32, _index: 0, ...none },
      { id: 33, _index: 0, ...none },
      { id: 33, _index: 1, ...none },
      { id: 34, _index: 0, ...none, n: 0 },
      { id: 35, _index: 4, ...none },
    ])
  })

  it('has the values that it has in a file', async () => {
    const mirrors = [await openPostgresMirror(newSchema(server)), openTestMirror()]
    const texts = [
      ...'x 2 -0 02 +2 2.0 1.10 -0.25 .5 5. 1e3 0.00 0x1 \\u00002 9007199254740993 9223372036854775807'.split(
        ' ',
      ),
      '',
      ' 2',
      '2 ',
      '9223372036854775808',
      '12345.6789000000',
      '0.12345678901234567',
    ]
    const values = [
      ...'1 20.0 2e1 -0 true false null [1.10] 1.5 -0.0 0e5 1e300 1e18 9007199254740991.0 9007199254740993'.split(
        ' ',
      ),
      ...'9007199254740993.0 9223372036854775807 9223372036854775808 1e400'.split(' '),
      ...texts.map((text) => `"${text}"`),
      `"0.${'0'.repeat(97)}1"`,
      `"0.${'0'.repeat(98)}1"`,
      `"1.5${'0'.repeat(60)}"`,
      `"100000000000000000000.0"`,
    ]
    const firsts = { i: '1', w: '9007199254740993', r: '0.5', t: '"x"', b: 'true' }
    const fields = (value: (name: string) => string) =>
      `{${Object.keys(firsts)
        .map((name) => `"${name}":${value(name)}`)
        .join()}}`

    const found = await Promise.all(
      mirrors.map(async (mirror) => {
        const open = await begin(mirror)
        await open.page(`{"id":1,"items":[${fields((name) => firsts[name as keyof typeof firsts])}]}`)
        for (const [index, value] of values.entries())
          await open.page(`{"id":${index + 2},"items":[${fields((name) => fitting(name, value))}]}`)
        const columns = await mirror.rows(
          `SELECT "column" AS name, type FROM sync_known_columns WHERE view = 'orders__items' ORDER BY 1`,
        )
        const shown = columns.map(({ name, type }) =>
          // Whole numbers of all lengths, and doubles, as texts of either database.
          type === 'INTEGER' ? `CAST("${String(name)}" AS TEXT) AS "${String(name)}"` : `"${String(name)}"`,
        )
        return {
          columns,
          rows: await mirror.rows(`SELECT ${shown.join(', ')} FROM orders__items ORDER BY _parent_id`),
        }
      }),
    )

    expect(found[0]?.columns.map(({ name, type }) => [name, type].join(' '))).toEqual([
      'b INTEGER',
      'i INTEGER',
      'r REAL',
      't TEXT',
      'w INTEGER',
    ])
    expect(found[0]?.columns).toEqual(found[1]?.columns)
    for (const [index, row] of (found[0]?.rows ?? []).entries())
      expect([values[index - 1], row]).toEqual([values[index - 1], withNul(found[1]?.rows[index] ?? {})])
  })
})

/** A fraction would change the type of a field of whole numbers. */
function fitting(name: string, value: string): string {
  return 'iwb'.includes(name) && value === '1.5' ? 'null' : value
}

/** PostgreSQL has no NUL. */
function withNul(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      typeof value === 'string' ? value.replaceAll('\0', '\\u0000') : value,
    ]),
  )
}

/** An object with so many fields. */
const wide = (count: number, value: (index: number) => unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, value(index)]))

describe.skipIf(server.missing !== null)(
  'a list that PostgreSQL cannot hold as it is',
  { timeout: 60_000 },
  () => {
    let mirror: PostgresMirror
    beforeEach(async () => {
      mirror = await openPostgresMirror(await emptySchema(server))
    })

    function sync(items: readonly object[], job = jobOf()) {
      const ids = items.map((_, index) => index)
      const { source } = scriptedList({ ids, item: (index) => JSON.stringify(items[index]) })
      return runOnce(mirror, { source }, { job })
    }

    it.each<[string, (index: number) => unknown]>([
      ['short texts', () => 'exactly 23 characters..'],
      ['texts that are compressed to fewer bytes', () => 'a'.repeat(900)],
      [
        'long texts',
        (index) =>
          `${index} `.repeat(3) +
          Array.from({ length: 90 }, (_, at) => (at * 7919 * (index + 3)) % 997).join(),
      ],
    ])('is kept, %s beyond a row in _json only', async (_what, value) => {
      const { error } = await sync([
        { id: 1, ...wide(398, value) },
        { id: 2, f0: value(0) },
      ])

      expect(error).toBeNull()
      expect(await mirror.rows('SELECT id::int FROM orders ORDER BY 1')).toEqual([{ id: 1 }, { id: 2 }])
      const [row] = await mirror.rows('SELECT * FROM orders WHERE id = 1')
      const [raw] = await mirror.rows('SELECT _json FROM orders_raw WHERE id = 1')
      const held = Object.entries(row ?? {}).filter(([name, cell]) => /^f\d/.test(name) && cell !== null)
      expect(held).toHaveLength(279)
      expect(Object.keys(JSON.parse(String(raw?._json)) as object)).toHaveLength(399)
    })

    it('has views of arrays whose names are cut alike numbered', async () => {
      const name = 'x'.repeat(60)
      const item = { id: 1, [`${name}a`]: [{ one: 1 }], [`${name}b`]: [{ two: 2 }] }
      expect((await sync([item])).error).toBeNull()
      expect((await sync([{ ...item, [`${name}b`]: [{ two: 2, more: 3 }] }])).error).toBeNull()

      const view = `orders__${name}`.slice(0, 63)
      expect(await mirror.rows(`SELECT one::int FROM ${view}`)).toEqual([{ one: 1 }])
      expect(await mirror.rows(`SELECT two::int, more::int FROM ${view.slice(0, 61)}_2`)).toEqual([
        { two: 2, more: 3 },
      ])
    })
  },
)
