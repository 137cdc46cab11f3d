import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseExact } from '../../../../src/json/exact.ts'
import {
  canonicalNumber,
  isJsonObject,
  isRawNumber,
  type JsonObject,
  type JsonValue,
  numberText,
  sameJson,
} from '../../../../src/json/value.ts'
import { type Leaf, sqlitePath } from '../../../../src/store/columns/column.ts'
import { hasNumbersAsNames } from '../../../../src/store/columns/row.ts'
import type { Job } from '../../../../src/sync/types.ts'
import { GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { LONG } from '../../../helpers/long.ts'
import { openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'
import { jsonTexts } from '../../../json/arbitrary.ts'
import { leavesOf } from '../../columns/items.ts'
import { begin } from '../../stage.ts'

const JOBS = [jobOf({ key: ['the id'] }), jobOf({ key: ['the id'] }, GLOBEX)]

/** An object with odd names and numbers, and a key of few values, so that items repeat. */
const keyed = fc
  .tuple(jsonTexts, fc.constantFrom('1', '2', '3', '3.0', '"3"', '"x"', '12345678901234567890'))
  .filter(([text]) => isJsonObject(parseExact(text)) && !hasListWithHoles(parseExact(text)))
  .map(([text, key]) => `{"the id":${key},"rest":${text}}`)

/** Whether a value has an object that may be shown as a list, which depends on other items: views.test.ts has these. */
function hasListWithHoles(value: JsonValue): boolean {
  return isJsonObject(value) && (hasNumbersAsNames(value) || Object.values(value).some(hasListWithHoles))
}

/** One step: an organization's page of one to three items. */
const arrivals = fc.array(fc.tuple(fc.nat(1), fc.array(keyed, { minLength: 1, maxLength: 3 })), {
  minLength: 1,
  maxLength: 8,
})

/** The versions of an item, the oldest first, without repetitions. */
type Versions = Map<string, string[]>

describe('any sequence of pages', () => {
  it('leaves the last version live, every other once in the history, and the file sound', async () => {
    await fc.assert(
      fc.asyncProperty(arrivals, async (pages) => {
        const test = openTestMirror()
        const expected = await saveAll(test, pages)

        expect(stored(test)).toEqual(Object.fromEntries(expected))
        for (const versions of expected.values()) expectRow(test, versions.at(-1) ?? '')
        expect(test.value('PRAGMA integrity_check')).toBe('ok')
        test.close()
      }),
      { numRuns: LONG ? 150 : 40 },
    )
  })
})

async function saveAll(test: TestMirror, pages: [number, string[]][]): Promise<Versions> {
  const walks = await Promise.all(JOBS.map((job) => begin(test, job)))
  const versions: Versions = new Map()
  for (const [index, texts] of pages) {
    const [walk, job] = [walks[index], JOBS[index]]
    if (!walk || !job) continue
    const distinct = [...new Map(texts.map((text) => [mark(job, text), text])).values()]
    test.clock.advance(1000)
    await walk.page(...distinct)
    for (const text of distinct) note(versions, mark(job, text), JSON.stringify(objectOf(text)))
  }
  return versions
}

function mark({ organization }: Job, text: string): string {
  const key = objectOf(text)['the id']
  const name = typeof key === 'string' ? key : canonicalNumber(JSON.stringify(key))
  return `${organization.name} ${name}`
}

function note(versions: Versions, item: string, text: string): void {
  const before = versions.get(item) ?? []
  const last = before.at(-1)
  const isSame = last !== undefined && sameJson(objectOf(last), objectOf(text), new Set())
  versions.set(item, isSame ? before : [...before, text])
}

function objectOf(text: string): JsonObject {
  const value = parseExact(text)
  if (!isJsonObject(value)) throw new Error(`not an object: ${text}`)
  return value
}

/** The versions of each item in the mirror, which must follow each other without a gap. */
function stored(test: TestMirror): Record<string, string[]> {
  const live = test.rows('SELECT *, CAST("the id" AS TEXT) AS id FROM orders_raw')
  return Object.fromEntries(
    live.map(({ _organization_id: organization, id, _json, _changed_at, _first_seen_at }) => {
      const history = test.rows(
        'SELECT * FROM orders_history WHERE _organization_id = ? AND CAST("the id" AS TEXT) = ? ORDER BY rowid',
        organization,
        id,
      )
      const ends = history.map(({ _valid_to }) => _valid_to)
      const starts = history.map(({ _valid_from }) => _valid_from)
      expect([...starts, _changed_at]).toEqual([_first_seen_at, ...ends])
      const name = JOBS.find((job) => job.organization.id === organization)?.organization.name
      return [`${name} ${String(id)}`, [...history.map((row) => String(row._json)), String(_json)]]
    }),
  )
}

/** The typed rows of an item: its values, each in a column of its path, and nothing else. */
function expectRow({ connection }: TestMirror, text: string): void {
  const columns = connection
    .prepare(
      `SELECT "column" AS name, path FROM sync_known_columns WHERE collection = 'orders' AND view = '' AND role <> 'key'`,
    )
    .all() as { name: string; path: string }[]
  const rows = connection
    .prepare(
      `SELECT orders.* FROM orders JOIN orders_raw USING ("_organization_id", "the id") WHERE orders_raw."_json" = ?`,
    )
    .safeIntegers()
    .all(text) as Record<string, unknown>[]
  const values = new Map(
    leavesOf(objectOf(text)).flatMap(([path, value]) =>
      value === null || path[0] === 'the id' ? [] : [[sqlitePath(path), value] as const],
    ),
  )
  expect(rows.length).toBeGreaterThan(0)
  for (const row of rows) {
    const filled = columns.filter(({ name }) => row[name] !== null)
    const cells = filled.map(({ name, path }) => [path, meaningOfCell(row[name], values.get(path))] as const)
    expect(cells).toHaveLength(values.size)
    expect(new Map(cells)).toEqual(new Map([...values].map(([path, value]) => [path, meaningOf(value)])))
  }
}

/**
 * The value in a form that can be compared with a cell: a fraction by its double, other numbers by their
 * decimal value.
 */
function meaningOf(value: Leaf): string {
  if (typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return value.toWellFormed()
  return Array.isArray(value) ? JSON.stringify(value) : numberMeaning(numberText(value))
}

function meaningOfCell(cell: unknown, value: Leaf | undefined): string {
  if (typeof value === 'boolean') return { 0: 'false', 1: 'true' }[String(cell)] ?? String(cell)
  // A text that is a number is that number in a numeric column.
  if (typeof value === 'string' && typeof cell !== 'string')
    return numberMeaning(String(cell)) === numberMeaning(value) ? meaningOf(value) : String(cell)
  const isNumber = typeof value === 'number' || (value !== undefined && isRawNumber(value))
  if (isNumber && typeof cell === 'number')
    return holds(cell, numberText(value)) ? meaningOf(value) : String(cell)
  return isNumber ? numberMeaning(String(cell)) : String(cell)
}

/** Whether a REAL is the number: a whole one to its last digit, a fraction by its double. */
function holds(real: number, text: string): boolean {
  const canonical = canonicalNumber(text)
  return /[.e]/.test(canonical) ? Number(text) === real : BigInt(canonical) === BigInt(real)
}

function numberMeaning(text: string): string {
  const canonical = canonicalNumber(text)
  const double = Number(text)
  const isFraction = /\.|e-/.test(canonical) && Number.isFinite(double) && double !== 0
  return isFraction ? canonicalNumber(String(double)) : canonical
}
