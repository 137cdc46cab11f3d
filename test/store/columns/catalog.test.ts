import { describe, expect, it } from 'vitest'
import { parseExact } from '../../../src/json/exact.ts'
import {
  type Catalog,
  createCatalog,
  extendCatalog,
  fitsKeys,
  keyColumns,
  keyValues,
} from '../../../src/store/columns/catalog.ts'
import { fitsElements } from '../../../src/store/columns/row.ts'
import { item } from './items.ts'

it.each<[string, 'INTEGER' | 'TEXT', bigint | string | null]>([
  ['7', 'INTEGER', 7n],
  ['-7', 'INTEGER', -7n],
  ['9223372036854775807', 'INTEGER', 9_223_372_036_854_775_807n],
  ['9223372036854775808', 'INTEGER', null],
  ['007', 'INTEGER', null],
  ['7a', 'INTEGER', null],
  ['007', 'TEXT', '007'],
])('the key %s stands in a key column that is %s as %s', (text, type, value) => {
  expect(keyValues([{ text }], [{ type }])).toEqual(value === null ? null : [value])
})

it.each([
  ['INTEGER', true, 'INTEGER'],
  ['INTEGER', false, 'TEXT'],
  ['TEXT', true, 'TEXT'],
] as const)('a key column that is %s becomes, with a JSON integer (%s), %s', (type, integer, expected) => {
  const before = createCatalog(keyColumns(['id']).map((column) => ({ ...column, type })))
  const key = [[{ text: '1', integer }]]
  const { catalog } = extendCatalog(before, key, [])

  expect(catalog.keys.map((column) => column.type)).toEqual([expected])
  expect(fitsKeys(before, key)).toBe(type === expected)
})

const extended = (known: Catalog, ...elements: string[]) =>
  extendCatalog(known, [], elements.map(item)).catalog
const fits = (known: Catalog, text: string) => {
  const array = parseExact(text)
  return Array.isArray(array) && fitsElements(known, array)
}

describe('the fields of the elements of an array', () => {
  const none = createCatalog([])

  it.each<[texts: string, column: string]>([
    ['1 20.0 "2" true null', 'a INTEGER'],
    ['1 "2" "x"', 'a INTEGER'],
    ['1 1.5 "1.50"', 'a REAL'],
    ['1.5 1', 'a REAL'],
    ['"x" 1 1.5', 'a TEXT'],
    ['1e400 1', 'a TEXT'],
    ['1 [2]', 'a INTEGER'],
  ])('have for %s one column of the type of the first, and fractions room: %s', (texts, columns) => {
    const elements = texts.split(' ').map((text) => `{"a":${text}}`)

    for (const catalog of [
      extended(none, ...elements),
      elements.reduce((known, element) => extended(known, element), none),
    ]) {
      expect(catalog.values.map(({ name, type }) => `${name} ${type}`).join(', ')).toBe(columns)
      expect(fits(catalog, `[${elements.join()}]`)).toBe(true)
    }
  })

  it('count only in objects', () => {
    expect(fits(none, '[1,"x",null,[],[{"a":1}],1.0,{},{"a":null}]')).toBe(true)
    expect(fits(none, '[1,{"a":1}]')).toBe(false)
  })

  it('stop at 500, and still become REAL', () => {
    const full = extended(
      none,
      JSON.stringify(Object.fromEntries(Array.from({ length: 600 }, (_, at) => [`f${at}`, at]))),
    )

    expect(full.values).toHaveLength(500)
    expect(fits(full, '[{"further":1,"f1":"x","deep":{"more":1}}]')).toBe(true)
    expect(extended(full, '{"f0":1.5,"further":1}').values[0]?.type).toBe('REAL')
  })
})
