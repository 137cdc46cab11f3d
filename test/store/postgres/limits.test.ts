import { beforeEach, describe, expect, it } from 'vitest'
import { withinPage } from '../../../src/store/postgres/storable.ts'
import { jobOf } from '../../helpers/jobs.ts'
import { emptySchema } from '../../helpers/kept-schema.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { openPostgresMirror, type PostgresMirror } from '../../helpers/postgres-mirror.ts'
import { runOnce } from '../../helpers/run-once.ts'
import { scriptedList } from '../../helpers/scripted-list.ts'

// What a PostgreSQL table cannot hold keeps no list out of the mirror.

const server = await openDatabase()

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
      ['texts and numbers in turn', (index) => (index % 2 === 0 ? index : 'exactly 23 characters..')],
      ['short texts of wide characters', () => '€uro €uro €'],
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
      expect(held.length).toBeGreaterThan(280)
      expect(Object.keys(JSON.parse(String(raw?._json)) as object)).toHaveLength(399)
    })

    it('has a key of wide characters rejected by its bytes', async () => {
      const { error } = await sync([
        { id: '€'.repeat(1000) },
        { id: '\u{1f600}'.repeat(500) },
        { id: 'a'.repeat(1000) },
      ])

      expect(error).toBeNull()
      expect(await mirror.rows('SELECT reason FROM sync_rejects')).toEqual([
        { reason: 'key "id" is longer than 2,400 bytes' },
      ])
      expect(await mirror.rows('SELECT count(*)::int FROM orders')).toEqual([{ count: 2 }])
    })

    it('keeps the longest keys that are taken, changed and missed', async () => {
      const name = 'c'.repeat(50)
      const job = jobOf({ name, key: ['a', 'b'] })
      // Of so many different characters that PostgreSQL compresses nothing: 799 of three bytes, and those around them.
      const text = Array.from({ length: 797 }, (_, at) =>
        String.fromCodePoint(0x4e00 + ((at * 7919) % 20_000)),
      ).join('')
      const items = [
        { a: text, b: 'xy' },
        { a: 'xy', b: text },
      ]
      const ids = items.map(({ a, b }) => Buffer.byteLength(JSON.stringify([a, b])))

      expect((await sync(items, job)).error).toBeNull()
      expect(
        (
          await sync(
            items.map((item) => ({ ...item, c: 1 })),
            job,
          )
        ).error,
      ).toBeNull()
      expect((await sync([{ a: 'y', b: 'z' }], job)).error).toBeNull()

      expect(ids).toEqual([2400, 2400])
      expect(await mirror.rows(`SELECT count(*)::int FROM ${name}_history`)).toEqual([{ count: 4 }])
      expect(await mirror.rows('SELECT count(*)::int FROM sync_rejects')).toEqual([{ count: 0 }])
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

    it('has the key columns of a view numbered, too', async () => {
      const name = 'k'.repeat(57)
      const job = jobOf({ key: [`${name}a`, `${name}b`] })
      expect((await sync([{ [`${name}a`]: 1, [`${name}b`]: 2, items: [{ n: 3 }] }], job)).error).toBeNull()

      const parent = `_parent_${name}`.slice(0, 63)
      expect(
        await mirror.rows(
          `SELECT ${parent}::int AS one, ${parent.slice(0, 61)}_2::int AS two, n::int FROM orders__items`,
        ),
      ).toEqual([{ one: 1, two: 2, n: 3 }])
    })
  },
)

describe('the values of a row', () => {
  it.each<[string, number, string | bigint, number]>([
    ['numbers', 400, 1n, 0],
    ['short texts', 400, 'paid', 0],
    ['longer texts', 296, 'x'.repeat(30), 0],
    ['longer texts', 300, 'x'.repeat(30), 4],
  ])('fit: %s, %i of them', (_what, count, value, leftOut) => {
    const names = Array.from({ length: count }, (_, index) => `f${index}`)
    const columns = names.map((name) => ({
      name,
      path: '',
      type: 'TEXT' as const,
      role: 'value' as const,
      wide: false,
    }))
    const row = { values: new Map(names.map((name) => [name, value])), arrays: [] }

    expect(withinPage({ columns, keyPaths: [['id']] }, row).leftOut).toBe(leftOut)
  })
})
