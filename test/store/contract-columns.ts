import * as fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { parseExact } from '../../src/json/exact.ts'
import { isJsonObject, isRawNumber, type JsonValue } from '../../src/json/value.ts'
import { sqlitePath } from '../../src/store/columns/column.ts'
import { GLOBEX, jobOf } from '../helpers/jobs.ts'
import { anyCharacter } from '../json/arbitrary.ts'
import { NAMES } from './names.ts'
import { begin, type OpenedStore } from './stage.ts'

const HOUR = 3_600_000

/** What each store has to keep of the columns of its tables and views. */
export function describeColumns(name: string, openStore: () => Promise<OpenedStore>): void {
  describe(`the columns of ${name}`, () => {
    let opened: OpenedStore
    beforeEach(async () => {
      opened = await openStore()
    })

    it('are listed with path, type and the time when they came', async () => {
      const { page } = await begin(opened)
      const begun = opened.clock.now()
      for (const text of [
        '{"id":1,"total":20,"a.b":"x"}',
        '{"id":2,"total":20.5,"customer":{"email":"a@example.com"}}',
        '{"id":3,"total":"free"}',
      ]) {
        await page(text)
        opened.clock.advance(HOUR)
      }

      const rows = await opened.rows("SELECT * FROM sync_columns WHERE collection = 'orders'")
      const found = rows.map(({ column, path, type, first_seen_at: at }) => {
        const hours = (new Date(at as string | Date).getTime() - begun) / HOUR
        return `${hours}: ${[column, path, type].join(' ')}`
      })
      expect(found.toSorted()).toEqual([
        '0: a.b $."a.b" TEXT',
        '0: id $.id INTEGER',
        '0: total $.total REAL',
        '1: customer__email $.customer.email TEXT',
        '2: total__text $.total TEXT',
      ])
    })

    it('are there for a field that is called like SQL, and get another type when it meets a fraction', async () => {
      const names = [
        '"',
        'b\n  "" INTEGER',
        'b\n """ INTEGER',
        '", "x" INTEGER',
        "d'--\n/*",
        ') STRICT;',
        '$1\\',
      ]
      const items = [1, 1.5, 'x'].map((value, index) =>
        JSON.stringify({ id: index, ...Object.fromEntries(names.map((field) => [field, value])) }),
      )
      for (const end of [1, 2, 3]) await (await begin(opened)).page(...items.slice(0, end))

      const reals = await opened.rows(`SELECT "column" FROM sync_columns WHERE type = 'REAL'`)
      expect(reals.map(({ column }) => String(column)).toSorted()).toEqual(names.toSorted())
      expect((await opened.misfits()).map(({ rows }) => rows)).toEqual(names.map(() => 1))
    })

    it('are there for every name that a field can have, of items and of elements', async () => {
      await expectShown(
        opened,
        1,
        NAMES.filter((field) => field !== 'in'),
      )
      const texts = fc
        .string({ unit: anyCharacter, maxLength: 5 })
        .map((text) => text.toWellFormed().replaceAll('\0', ''))
      const lists = fc.uniqueArray(
        fc.constant('u').chain((end) => texts.map((text) => text + end)),
        { minLength: 1, maxLength: 5 },
      )
      let id = 1
      await fc.assert(
        fc.asyncProperty(lists, (names) => expectShown(opened, ++id, names)),
        { numRuns: 3 },
      )
    })

    it('are told how many values did not fit them, of all lists of a collection', async () => {
      const run = await begin(opened)
      await run.page('{"id":1,"a":1,"b":"x"}', '{"id":2,"a":"7"}', '{"id":3,"a":"seven","b":true}')
      await (await begin(opened, jobOf({}, GLOBEX))).page('{"id":1,"a":"x"}')
      const collection = 'orders'
      expect(await opened.misfits()).toEqual([
        { collection, column: 'a__text', rows: 2 },
        { collection, column: 'b__text', rows: 1 },
      ])

      await (await begin(opened)).page('{"id":1,"a":1}', '{"id":2,"a":"7"}', '{"id":3,"a":2}')

      expect(await opened.misfits()).toEqual([{ collection, column: 'a__text', rows: 1 }])
    })

    it('are warned of where there is no room for more, of items and of elements', async () => {
      const { page } = await begin(opened)
      const many = Array.from({ length: 600 }, (_, index) => `"f${index}":1`).join()
      const found = []
      for (const text of [
        `{"id":1,"l":[{${many}}],${many}}`,
        '{"id":2,"l":[{"f0":2}],"f0":"x","a":{"new":1}}',
        '{"id":3,"f0":3}',
      ])
        found.push((await page(text)).notices.map(({ message }) => message))

      expect(found).toEqual([
        [
          expect.stringMatching(/^orders has \d+ columns.* example f\d+, f\d+, f\d+$/),
          expect.stringMatching(/^orders__l has \d+ columns.* example f\d+, f\d+, f\d+$/),
        ],
        [expect.stringMatching(/^orders has .* stay in _json only, for example f0, a\.new$/)],
        [],
      ])
    })

    it('tell what was known at each moment', async () => {
      const pages = [
        ['{"id":1,"a":1}', '{"id":2,"a":2,"b":"x"}'],
        ['{"id":1,"a":"seven"}'],
        ['{"id":1,"a":1.5,"c":{"d":[1]}}', '{"id":2,"a":9,"b":"y"}'],
        ['{"id":"x-3","b":"z"}'],
      ]
      const { page } = await begin(opened)
      const found: [at: string, rows: string[]][] = []
      for (const texts of pages) {
        opened.clock.advance(HOUR)
        await page(...texts)
        const at = new Date(opened.clock.now()).toISOString()
        found.push([at, discovered(await opened.rows('SELECT * FROM orders'))])
      }

      for (const [at, rows] of found) {
        const asOf = `_valid_from <= '${at}' AND (_valid_to IS NULL OR _valid_to > '${at}')`
        expect(discovered(await opened.rows(`SELECT * FROM orders_versions WHERE ${asOf}`))).toEqual(rows)
      }
    })

    it.each(['x', 'x\\u0000'])('show every value beside a field %s in its class', async (field) => {
      const { page } = await begin(opened)
      await page(`{"id":0,"l":[{"i":1,"r":0.5,"t":"x","${field}":1}]}`)
      const elements = VALUES.map(
        (text) => `{"i":${/\.\d*[1-9]$/.test(text) ? null : text},"r":${text},"t":${text}}`,
      )
      await page(`{"id":1,"l":[${elements.join()}]}`)

      const rows = await opened.rows(
        'SELECT CAST(i AS TEXT) AS i, r, t FROM orders__l WHERE _parent_id = 1 ORDER BY _index',
      )
      // Some have a minus zero.
      const found = rows.map(({ i, r, t }, index) => [VALUES[index], i, r === 0 ? 0 : r, t])
      expect(found).toEqual(
        VALUES.map((text) => {
          const value = parseExact(text)
          return [
            text,
            shown(value, 'INTEGER')?.toString() ?? null,
            shown(value, 'REAL'),
            shown(value, 'TEXT'),
          ]
        }),
      )
    })
  })
}

/** Values that are told from others, or are not numbers as one would write them. */
const VALUES = [
  ...'1 20.0 2e1 -0 -0.0 0e5 1.5 -0.25 true false null [1.10] [] {"b":1} 1e18 1e300 1e400'.split(' '),
  ...'9007199254740991.0 9007199254740993 9007199254740993.0 12345678901234567890'.split(' '),
  ...'9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809'.split(' '),
  ...'"x" "2" "-0" "02" "+2" "2.0" "1.10" "-0.25" ".5" "5." "1e3" "0.00" "0x1" "1,234.50" "true" "[]" ""'.split(
    ' ',
  ),
  ...'"9007199254740993" "9223372036854775807" "9223372036854775808" "12345.6789000000" "é\\n"'.split(' '),
  '" 2"',
  '"2 "',
  '"0.12345678901234567"',
  '"\\\\u0000 \\\\\\" \\u005c"',
  '"100000000000000000000.0"',
  `"1.5${'0'.repeat(60)}"`,
  ...[97, 98].map((zeros) => `"0.${'0'.repeat(zeros)}1"`),
]

/** What a column of this type shows of a value; null: it does not fit. */
function shown(value: JsonValue, type: string): unknown {
  if (value === null || isJsonObject(value)) return null
  if (typeof value === 'boolean') return type === 'INTEGER' ? BigInt(value) : null
  if (Array.isArray(value)) return type === 'TEXT' ? JSON.stringify(value) : null
  if (type === 'TEXT') return isRawNumber(value) ? value.rawJSON : String(value)
  if (typeof value === 'string') return numberIn(value, type)
  const text = isRawNumber(value) ? value.rawJSON : String(value)
  const number = Number(text)
  const isSafe = Math.abs(number) <= Number.MAX_SAFE_INTEGER
  if (/^-?\d+$/.test(text)) return type === 'REAL' ? (isSafe ? number + 0 : null) : wholeIn64Bits(text)
  // Beyond the range of a double it is a text, and does not fit.
  if (type === 'REAL') return Number.isFinite(number) ? number + 0 : null
  return isSafe && Number.isInteger(number) ? BigInt(number) : null
}

function numberIn(text: string, type: string): unknown {
  if (type === 'REAL')
    return text.length <= 15 && /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text) ? Number(text) + 0 : null
  return /^(0|-?[1-9]\d*)$/.test(text) ? wholeIn64Bits(text) : null
}

function wholeIn64Bits(text: string): bigint | null {
  const whole = BigInt(text)
  return BigInt.asIntN(64, whole) === whole ? whole : null
}

/** The values of rows that are the API's, in an order of their own. */
function discovered(rows: readonly Record<string, unknown>[]): string[] {
  const texts = rows.map((row) => {
    const values = Object.entries(row).filter(([name, value]) => !name.startsWith('_') && value !== null)
    return JSON.stringify(values.map(([name, value]) => `${name},${String(value)}`).toSorted())
  })
  return texts.toSorted()
}

/** Writes an item with these fields, each with its place as its value, and one that has them in an element; each is found in a column of its own. */
async function expectShown(opened: OpenedStore, id: number, names: readonly string[]): Promise<void> {
  const fields = names.map((field, index) => `${JSON.stringify(field)}:${index}`).join()
  const open = await begin(opened)
  await open.page(`{"id":${id},${fields && `${fields},`}"in":[{${fields}}]}`)
  const ofItems = "sync_columns WHERE collection = 'orders'"
  for (const [table, known, which] of [
    ['orders', ofItems, `id = ${id}`],
    ['orders_versions', ofItems, `id = ${id}`],
    ['orders__in', "sync_known_columns WHERE view = 'orders__in'", `_parent_id = ${id}`],
  ] as const) {
    const columns = await opened.rows(`SELECT "column" AS c, path FROM ${known}`)
    const [row] = await opened.rows(`SELECT * FROM ${table} WHERE ${which}`)
    const values = new Map(columns.map(({ c, path }) => [path, row?.[String(c)]]))
    for (const [index, field] of names.entries())
      expect([table, field, Number(values.get(sqlitePath([field])))]).toEqual([table, field, index])
  }
}
