import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseExact } from '../../../../src/json/exact.ts'
import { canonicalNumber, isJsonObject, type JsonObject, numberText } from '../../../../src/json/value.ts'
import { type Leaf, sqlitePath } from '../../../../src/store/columns/column.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { LONG } from '../../../helpers/long.ts'
import { openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'
import { jsonTexts } from '../../../json/arbitrary.ts'
import { item } from '../../columns/items.ts'
import { begin } from '../../stage.ts'

const JOB = jobOf({ key: ['the id'] })

/** An object with odd names and numbers, and a key of few values, so that items repeat. */
const keyed = fc
  .tuple(jsonTexts, fc.constantFrom('1', '2', '3', '3.0', '"3"', '"x"', '12345678901234567890'))
  .filter(([text]) => isJsonObject(parseExact(text)))
  .map(([text, key]) => `{"the id":${key},"rest":${text}}`)

const pages = fc.array(fc.array(keyed, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 8 })

it('any sequence of pages leaves each value of the last version in a column of its path, and the file sound', async () => {
  await fc.assert(
    fc.asyncProperty(pages, async (all) => {
      const test = openTestMirror()
      const { page } = await begin(test, JOB)
      const last = new Map<string, string>()
      for (const texts of all) {
        const distinct = new Map(texts.map((text) => [idOf(text), text]))
        await page(...distinct.values())
        for (const [id, text] of distinct) last.set(id, text)
      }

      expect(test.value('SELECT count(*) FROM orders')).toBe(last.size)
      for (const text of last.values()) expectRow(test, text)
      expect(test.value('PRAGMA integrity_check')).toBe('ok')
      test.close()
    }),
    { numRuns: LONG ? 150 : 40 },
  )
})

function idOf(text: string): string {
  const key = item(text)['the id']
  return typeof key === 'string' ? key : canonicalNumber(JSON.stringify(key))
}

/** The fields of an item, objects opened up: scalars, nulls and arrays. */
function leavesOf(object: JsonObject, above: readonly string[] = []): [path: string[], value: Leaf | null][] {
  return Object.entries(object).flatMap(([name, value]) => {
    const path = [...above, name]
    return isJsonObject(value) ? leavesOf(value, path) : [[path, value] as [string[], Leaf | null]]
  })
}

/** The typed row of an item: its values, each in a column of its path, and nothing else. */
function expectRow({ connection }: TestMirror, text: string): void {
  const columns = connection
    .prepare(
      `SELECT "column" AS name, path FROM sync_known_columns WHERE collection = 'orders' AND view = '' AND role <> 'key'`,
    )
    .all() as { name: string; path: string }[]
  const row = connection
    .prepare('SELECT * FROM orders WHERE CAST("the id" AS TEXT) = ?')
    .safeIntegers()
    .get(idOf(text)) as Record<string, unknown>
  const leaves = leavesOf(item(text)).filter(([[first], value]) => value !== null && first !== 'the id')
  const values = new Map(leaves.map(([path, value]) => [sqlitePath(path), value as Leaf]))
  const filled = columns.filter(({ name }) => row[name] !== null)
  expect(filled.map(({ path }) => path).toSorted()).toEqual([...values.keys()].toSorted())
  for (const { name, path } of filled)
    expect([path, row[name], holds(row[name], values.get(path))]).toEqual([path, row[name], true])
}

/** Whether a cell is the value: a fraction by its double, all other numbers by their decimal value. */
function holds(cell: unknown, value: Leaf | undefined): boolean {
  if (value === undefined) return false
  // Its column may have become REAL since.
  if (typeof value === 'boolean')
    return typeof cell === 'string' ? cell === String(value) : Number(cell) === Number(value)
  if (Array.isArray(value)) return cell === JSON.stringify(value)
  if (typeof value === 'string' && typeof cell === 'string') return cell === value.toWellFormed()
  // A text that is a number is that number in a numeric column.
  const number = canonicalNumber(typeof value === 'string' ? value : numberText(value))
  if (typeof cell !== 'number') return canonicalNumber(String(cell)) === number
  return /[.e]/.test(number) ? Number(number) === cell : BigInt(number) === BigInt(cell)
}
