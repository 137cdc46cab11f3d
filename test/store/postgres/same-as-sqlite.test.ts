import Database from 'better-sqlite3'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseExact } from '../../../src/json/exact.ts'
import { isJsonObject } from '../../../src/json/value.ts'
import { quoted } from '../../../src/store/core/sql.ts'
import { storable, storableJson } from '../../../src/store/postgres/storable.ts'
import { emptySchema } from '../../helpers/kept-schema.ts'
import { LONG } from '../../helpers/long.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { openPostgresMirror, type PostgresMirror } from '../../helpers/postgres-mirror.ts'
import { runOnce } from '../../helpers/run-once.ts'
import { scriptedList } from '../../helpers/scripted-list.ts'
import { openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'
import { jsonTexts } from '../../json/arbitrary.ts'

// The same lists, read by the same walks into both stores, give the same tables.

const server = await openDatabase()

/** An object whose texts both databases can hold, and no name that PostgreSQL would cut. */
const fields = jsonTexts.filter(
  (text) => isJsonObject(parseExact(text)) && !/\\u0000|\\u[dD][89a-fA-F]/.test(text) && text.length < 60,
)

/** How a list is at one time: the item at each of twelve places, or none. */
const listNow = fc.array(fc.option(fields, { freq: 4 }), { minLength: 12, maxLength: 12 })

const KEYS = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12']

describe.skipIf(server.missing !== null)('PostgreSQL and SQLite', () => {
  it('hold the same after the same history of a list', { timeout: 120_000 }, async () => {
    const key = fc.constantFrom('number', 'text', 'late text')
    // Shrinking opens more mirrors than the server has connections.
    await fc.assert(
      fc.asyncProperty(fc.array(listNow, { minLength: 2, maxLength: 5 }), key, async (times, keyed) => {
        const sqlite = openTestMirror()
        const postgres = await openPostgresMirror(await emptySchema(server))
        try {
          for (const [time, items] of times.entries()) {
            const listed = items.flatMap((text, place) => (text === null ? [] : [{ place, text }]))
            const ids = listed.map(({ place }) => place)
            const item = (place: number) => {
              const isText = keyed === 'text' || (keyed === 'late text' && time > 0 && place > 5)
              const id = isText ? `"k${KEYS[place]}"` : KEYS[place]
              return `{"id":${id},"it":${items[place] ?? 'null'}}`
            }
            for (const mirror of [sqlite, { ...postgres }]) {
              const removals = { brakePercent: 20, brakeRows: 3, accept: time % 2 === 0 }
              const listing = scriptedList({ ids, perPage: 5, item })
              const result = await runOnce(mirror, listing, { removals })
              expect(result.error).toBeNull()
            }
            sqlite.clock.advance(60_000)
            postgres.clock.advance(60_000)
          }

          expect(await tablesOf(postgres)).toEqual(tablesIn(sqlite))
        } finally {
          sqlite.close()
          await postgres.close()
        }
      }),
      { numRuns: Number(process.env.HISTORIES ?? (LONG ? 50 : 5)), endOnFailure: true },
    )
  })

  it('store a text with NUL, PostgreSQL escaped', async () => {
    const postgres = await openPostgresMirror(await emptySchema(server))
    const text = '{"id":1,"a":"x\\u0000y","b":[{"c":"\\u0000","d":"\\\\u0000"}]}'
    const listed = scriptedList({ ids: [1], item: () => text })
    expect((await runOnce(postgres, listed)).error).toBeNull()

    expect(await postgres.rows('SELECT a FROM orders')).toEqual([{ a: 'x\\u0000y' }])
    expect(await postgres.rows('SELECT c, d FROM orders__b')).toEqual([{ c: '\\u0000', d: '\\u0000' }])
    expect(await postgres.rows('SELECT _json FROM orders_raw')).toEqual([{ _json: text }])
  })

  it('keep JSON that holds no such character as it is', () => {
    fc.assert(
      fc.property(jsonTexts, (text) => {
        if (!/\\u0000|\\u[dD][89a-fA-F]/.test(text)) expect(storableJson(text)).toBe(text)
        expect(() => JSON.parse(storableJson(text))).not.toThrow()
        expect(storable(JSON.stringify(JSON.parse(storableJson(text))))).not.toContain('\0')
      }),
    )
  })
})

const TABLES = {
  orders: 'ORDER BY _organization_id, id',
  orders_raw: 'ORDER BY _organization_id, id',
  orders_history: 'ORDER BY _organization_id, id, _valid_to',
  orders_versions: 'ORDER BY 1',
  orders_changes: 'ORDER BY 1',
  sync_columns: 'ORDER BY collection, "column"',
  sync_view_columns: 'ORDER BY view, "column"',
  sync_runs: 'ORDER BY id',
  sync_walks: 'ORDER BY id',
  sync_pages: 'ORDER BY walk_id, ordinal',
  sync_missing: 'ORDER BY organization_id, collection, key',
  sync_jobs: 'ORDER BY organization_id, collection',
  sync_status: 'ORDER BY organization_id, collection',
  sync_rejects: 'ORDER BY fingerprint',
  sync_refreshed: 'ORDER BY walk_id',
}

/** Of one of them alone. */
const WORKERS = ['owner', 'epoch', 'refresh_turn', 'refreshes_at', 'refreshes_until']
const OWN = new Set(['sequence', '_sequence', ...WORKERS])

type Rows = Record<string, unknown>[]

function tablesIn({ file }: TestMirror): Record<string, Rows> {
  const reader = new Database(file, { readonly: true }).defaultSafeIntegers()
  try {
    const views = reader
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'view' AND name LIKE 'orders\\_\\_%' ESCAPE '\\'")
      .pluck()
    const all = { ...TABLES, ...Object.fromEntries((views.all() as string[]).map((name) => [name, ''])) }
    const read = (name: string, order: string) =>
      shown(reader.prepare(`SELECT * FROM ${quoted(name)} ${order}`).all() as Rows)
    return Object.fromEntries(Object.entries(all).map(([name, order]) => [name, read(name, order)]))
  } finally {
    reader.close()
  }
}

async function tablesOf({ rows, address }: PostgresMirror): Promise<Record<string, Rows>> {
  const views = await rows(
    "SELECT viewname AS name FROM pg_views WHERE schemaname = $1 AND viewname LIKE 'orders\\_\\_%'",
    address.schema,
  )
  const all = { ...TABLES, ...Object.fromEntries(views.map(({ name }) => [String(name), ''])) }
  const tables: Record<string, Rows> = {}
  for (const [name, order] of Object.entries(all))
    tables[name] = shown(await rows(`SELECT * FROM ${quoted(name)} ${order}`))
  return tables
}

/** As texts, in one order: databases sort texts differently. */
function shown(rows: Rows): Rows {
  const texts = rows.map((row) => {
    const cells = Object.entries(row).filter(([name]) => !OWN.has(name))
    return Object.fromEntries(cells.map(([name, value]) => [name, textOf(value)]))
  })
  return texts.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))
}

function textOf(value: unknown): string | null {
  if (value === null) return null
  return value instanceof Date ? value.toISOString() : `${value as string | number | bigint}`
}
