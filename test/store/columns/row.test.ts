import { describe, expect, it } from 'vitest'
import { createCatalog, extendCatalog, keyColumns } from '../../../src/store/columns/catalog.ts'
import { leftOut, toRow } from '../../../src/store/columns/row.ts'
import { item } from './items.ts'

const KEY = keyColumns(['id'])

/** What pages of items make of the catalog, each of the one before it, and the values of their rows. */
function place(pages: readonly string[], start = createCatalog(KEY)) {
  let catalog = start
  return pages.map((texts) => {
    const items = texts.split(' | ').map(item)
    const fits = items.every((one) => toRow(catalog, one))
    const extension = fits ? { catalog, changed: [], notices: [] } : extendCatalog(catalog, [], items)
    catalog = extension.catalog
    const values = items.map((one) => {
      const row = toRow(catalog, one)
      if (!row) throw new Error('an item does not fit the columns that were made for it')
      return Object.fromEntries(row.values)
    })
    const notices = [...extension.notices, ...leftOut(catalog, items)]
    return { ...extension, notices, values }
  })
}

describe('an item’s row', () => {
  it.each([
    ['a text', '"x"', 'TEXT', 'x'],
    ['an empty text', '""', 'TEXT', ''],
    ['true', 'true', 'INTEGER', 1n],
    ['false', 'false', 'INTEGER', 0n],
    ['a whole number', '20', 'INTEGER', 20n],
    ['a whole number with a point', '20.0', 'INTEGER', 20n],
    ['a whole number with an exponent', '2e1', 'INTEGER', 20n],
    ['minus zero', '-0', 'INTEGER', 0n],
    ['2^53 + 1', '9007199254740993', 'INTEGER', 9007199254740993n],
    ['digits that a double prints differently', '1152921504606847000', 'INTEGER', 1152921504606847000n],
    ['2^63 - 1', '9223372036854775807', 'INTEGER', 9223372036854775807n],
    ['-2^63', '-9223372036854775808', 'INTEGER', -9223372036854775808n],
    ['2^63', '9223372036854775808', 'TEXT', '9223372036854775808'],
    ['20 digits', '12345678901234567890', 'TEXT', '12345678901234567890'],
    ['20 digits with a point', '12345678901234567890.0', 'TEXT', '12345678901234567890.0'],
    ['a whole number of 10^20', '1e20', 'TEXT', '1e20'],
    ['22 digits that a double holds', '1000000000000000000000', 'TEXT', '1000000000000000000000'],
    ['a number beyond a double', '1e400', 'TEXT', '1e400'],
    ['a number that a double turns into zero', '1e-400', 'TEXT', '1e-400'],
    ['a fraction', '1.5', 'REAL', 1.5],
    ['a fraction with a zero at its end', '1.10', 'REAL', 1.1],
    ['a small fraction', '0.0000001', 'REAL', 1e-7],
    ['an array', '[1.10,{"b":null}]', 'TEXT', '[1.1,{"b":null}]'],
    ['an empty array', '[]', 'TEXT', '[]'],
  ])('makes a column for %s', (_what, text, type, value) => {
    const column = { name: 'a', path: '$.a', type, role: 'value' }

    expect(place([`{"a":${text}}`])).toMatchObject([{ changed: [column], values: [{ a: value }] }])
  })

  it.each(['null', '{}', '{"b":null}', '{"b":{}}'])('makes no column for %s', (text) => {
    const catalog = createCatalog(KEY)

    expect(place([`{"a":${text}}`], catalog)).toEqual([{ catalog, values: [{}], changed: [], notices: [] }])
  })

  it.each<[texts: string, values: object[]]>([
    // An INTEGER column.
    ['1 | true | 20.0 | null', [{ a: 1n }, { a: 1n }, { a: 20n }, {}]],
    ['true | 7', [{ a: 1n }, { a: 7n }]],
    ['1 | "x" | 2', [{ a: 1n }, { a__text: 'x' }, { a: 2n }]],
    ['1 | [2.0]', [{ a: 1n }, { a__text: '[2]' }]],
    ['1 | 12345678901234567890', [{ a: 1n }, { a__text: '12345678901234567890' }]],
    ['1 | "4600" | "-7" | "0" | "-0"', [{ a: 1n }, { a: 4600n }, { a: -7n }, { a: 0n }, { a: 0n }]],
    ['1 | "9223372036854775807"', [{ a: 1n }, { a: 9223372036854775807n }]],
    ...'|+1|01|-|1e3|1.0|1.5|0x10|1_000|1,000|１|٣|NaN| 1|1 |9223372036854775808|-9223372036854775809'
      .split('|')
      .concat('1'.repeat(500))
      .map((text): [string, object[]] => [`1 | "${text}"`, [{ a: 1n }, { a__text: text }]]),
    ['1 | "1\\n"', [{ a: 1n }, { a__text: '1\n' }]],
    // An INTEGER column that meets a fraction: one that would round a stored value is a text.
    ['1 | 1.5 | 2', [{ a: 1n }, { a: 1.5 }, { a: 2 }]],
    ['1 | "3" | 1.5 | "2.5"', [{ a: 1n }, { a: 3n }, { a: 1.5 }, { a: 2.5 }]],
    ['9007199254740994 | 1.5', [{ a: 9007199254740994n }, { a: 1.5 }]],
    ['9007199254740993 | 1.50', [{ a: 9007199254740993n }, { a__text: '1.5' }]],
    ['1 | 9007199254740993 | 1.50', [{ a: 1n }, { a: 9007199254740993n }, { a__text: '1.5' }]],
    ['1 | "9007199254740993" | 1.5', [{ a: 1n }, { a: 9007199254740993n }, { a__text: '1.5' }]],
    // A REAL column.
    ['1.5 | 20.0 | 9007199254740994', [{ a: 1.5 }, { a: 20 }, { a: 9007199254740994 }]],
    ['1.5 | 9007199254740993', [{ a: 1.5 }, { a__text: '9007199254740993' }]],
    ['1.5 | 1e20', [{ a: 1.5 }, { a__text: '1e20' }]],
    ['1.5 | true | "x" | []', [{ a: 1.5 }, { a__text: 'true' }, { a__text: 'x' }, { a__text: '[]' }]],
    ['1.5 | "19.90" | "20" | "-0.5"', [{ a: 1.5 }, { a: 19.9 }, { a: 20 }, { a: -0.5 }]],
    ['1.5 | "0.0000001" | "9007199254740994"', [{ a: 1.5 }, { a: 1e-7 }, { a: 9007199254740994 }]],
    ...'.5|5.|1e3|1.5e1|00.5|-|Infinity|9007199254740993|11111111111111111111|0.12345678901234567890'
      .split('|')
      .concat(`0.${'0'.repeat(330)}1`, `1${'0'.repeat(310)}`)
      .map((text): [string, object[]] => [`1.5 | "${text}"`, [{ a: 1.5 }, { a__text: text }]]),
    // A TEXT column.
    ['"x" | "1" | "01"', [{ a: 'x' }, { a: '1' }, { a: '01' }]],
    ['"x" | 1.10 | 2e1 | -0 | 1e400', [{ a: 'x' }, { a: '1.1' }, { a: '20' }, { a: '0' }, { a: '1e400' }]],
    ['"x" | [1]', [{ a: 'x' }, { a: '[1]' }]],
    ['[1] | "x"', [{ a: '[1]' }, { a: 'x' }]],
    ['"x" | true | false', [{ a: 'x' }, { a__text: 'true' }, { a__text: 'false' }]],
    ['1e400 | 5', [{ a: '1e400' }, { a: '5' }]],
    // A field that is sometimes an object.
    ['5 | {"b":6} | 7', [{ a: 5n }, { a__b: 6n }, { a: 7n }]],
  ])('places the values of %s', (texts, expected) => {
    const placed = place(texts.split(' | ').map((text) => `{"a":${text}}`))

    expect(placed.flatMap(({ values }) => values)).toEqual(expected)
  })

  it('warns when a __text column appears, and only then', () => {
    const placed = place(['{"a":1}', '{"a":"x"}', '{"a":"y"}'])

    expect(placed.map(({ notices }) => notices)).toEqual([
      [],
      [warning('such values are stored as text in column a__text')],
      [],
    ])
  })

  it('continues from stored columns', () => {
    const before = place(['{"a":1,"a.b":"x","_c":{"":2.5}}', '{"a":"x"}']).at(-1)?.catalog
    const restored = createCatalog([...KEY, ...(before?.values ?? [])])

    expect(place(['{"a":"y","a.b":"z","_c":{"":1.5}} | {"a":2}'], restored)).toMatchObject([
      { changed: [], values: [{ a__text: 'y', 'a.b': 'z', field_c__field: 1.5 }, { a: 2n }] },
    ])
  })

  it('gives each path a name of its own', () => {
    const [placed] = place([
      '{"id":1,"ID":2,"a":{"b":3},"a__b":4,"A__B":5,"":6,"field":7,"_x":8,"field_x":9,"a\\u0000":0,"a_":1}',
    ])

    expect(placed?.catalog.values.map(({ name, path }) => `${name} ${path}`)).toEqual([
      'ID_2 $.ID',
      'a__b $.a.b',
      'a__b_2 $.a__b',
      'A__B_3 $.A__B',
      'field $.""',
      'field_2 $.field',
      'field_x $._x',
      'field_x_2 $.field_x',
      'a_ $."a\\u0000"',
      'a__2 $.a_',
    ])
  })

  it('gives a __text column, and a field that is called like a key column, names of their own, too', () => {
    const keyed = createCatalog(keyColumns(['_id', 'customer.id']))
    const texts = [
      '{"_id":1,"customer":{"id":2,"n":3},"field_id":4,"CUSTOMER__ID":5}',
      '{"_id":2,"customer":{"id":2,"n":"x"}}',
    ]

    expect(keyed.keys.map(({ name }) => name)).toEqual(['field_id', 'customer__id'])
    expect(place(texts, keyed).flatMap(({ values }) => values)).toEqual([
      { customer__n: 3n, field_id_2: 4n, CUSTOMER__ID_2: 5n },
      { customer__n__text: 'x' },
    ])
    expect(place(['{"a":1,"a__text":"own"}', '{"a":"x"}']).at(-1)?.values).toEqual([{ a__text_2: 'x' }])
  })
})

// The first type of a column has room for all values of the page.
it.each<[items: string, added: string, values: object[]]>([
  ['{"a":20} | {"a":19.99}', 'a REAL', [{ a: 20 }, { a: 19.99 }]],
  ['{"a":true} | {"a":1} | {"a":0.5}', 'a REAL, a__text TEXT', [{ a__text: 'true' }, { a: 1 }, { a: 0.5 }]],
  [
    '{"a":9007199254740993} | {"a":0.5}',
    'a INTEGER, a__text TEXT',
    [{ a: 9007199254740993n }, { a__text: '0.5' }],
  ],
  [
    '{"a":1} | {"b":"x"} | {"c":{"d":1.5}}',
    'a INTEGER, b TEXT, c__d REAL',
    [{ a: 1n }, { b: 'x' }, { c__d: 1.5 }],
  ],
])('a page has all its columns made at once: %s', (texts, added, values) => {
  const [placed] = place([texts])

  expect(placed?.changed.map(({ name, type }) => `${name} ${type}`)).toEqual(added.split(', '))
  expect(placed?.values).toEqual(values)
})

describe('past 500 columns', () => {
  it('takes no memory for the paths of fields that are left out', () => {
    const many = Array.from({ length: 150_000 }, (_, index) => `"f${index}":1`).join(',')
    const deep = `${'{"a":'.repeat(480)}{${many}}${'}'.repeat(480)}`
    const hostile = item(`{"deep":${deep}}`)
    const before = process.resourceUsage().maxRSS

    const { catalog } = extendCatalog(createCatalog(KEY), [], [hostile])
    const notices = leftOut(catalog, [hostile])
    const elements = extendCatalog(createCatalog([]), [], [hostile]).catalog

    expect([catalog.values.length, elements.values.length]).toEqual([499, 500])
    expect(notices.map(({ message }) => message.length < 400)).toEqual([true])
    // All paths would take 600,000 kilobytes.
    expect(process.resourceUsage().maxRSS - before).toBeLessThan(200_000)
  })

  it('leaves further fields out, and names some of them, page by page', () => {
    const placed = place([`{"id":1,${fields(0, 600)}}`, '{"new":1} | {"f0":5,"new":2}'])

    const [first, second] = placed.map(({ values }) => values)
    expect(Object.keys(first?.[0] ?? {})).toHaveLength(499)
    expect(second).toEqual([{}, { f0: 5n }])
    expect(placed.map(({ notices }) => notices)).toEqual([
      [warning('500 columns')],
      [warning('_json only, for example new')],
    ])
  })

  it('still widens columns, and adds no __text column', () => {
    const placed = place([`{${fields(0, 499)}}`, '{"f0":1.5,"f1":"x"}', '{"f1":"y","f2":2}'])

    expect(placed.slice(1).map(({ values }) => values)).toEqual([[{ f0: 1.5 }], [{ f2: 2n }]])
    expect(placed.map(({ changed }) => changed.length)).toEqual([499, 1, 0])
    const warned = [warning('_json only, for example f1')]
    expect(placed.map(({ notices }) => notices)).toEqual([[], warned, warned])
  })
})

function warning(part: string) {
  return { message: expect.stringContaining(part) }
}

/** The fields f FROM, ... as JSON text. */
function fields(from: number, to: number): string {
  return Array.from({ length: to - from }, (_, at) => `"f${from + at}":${at}`).join(',')
}
