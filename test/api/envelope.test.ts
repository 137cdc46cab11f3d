import { describe, expect, it } from 'vitest'
import type { Envelope } from '../../src/api/page.ts'
import { type Fields, LIST, paged, read, textsOf } from './helpers/envelope.ts'

function deep(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels)
}

describe('an envelope that is accepted', () => {
  it('is the paginated one', () => {
    const envelope = read(paged())

    expect(envelope.paging).toEqual({ next: `${LIST}?page=2`, currentPage: 1, lastPage: 2, total: 27 })
    expect(envelope.items.map(({ text, value }) => [text, value])).toEqual([
      ['{"id":1}', { id: 1 }],
      ['{"id":2}', { id: 2 }],
    ])
  })

  it('is the plain one, without links and meta', () => {
    const envelope = read('{"data":[{"id":1}],"success":true,"message":"OK"}')

    expect(envelope.paging).toBeNull()
    expect(textsOf(envelope)).toEqual(['{"id":1}'])
  })

  it('is a bare list', () => {
    const envelope = read('[{"id":1},7,null]')

    expect(envelope.paging).toBeNull()
    expect(envelope.items.map(({ value }) => value)).toEqual([{ id: 1 }, 7, null])
  })

  it.each([
    ['an empty list', '{"data":[]}'],
    ['an empty object, which is how an empty list with keys is written', '{"data":{}}'],
    ['links and meta that are empty lists, as PHP writes an object', '{"data":[],"links":[],"meta":[]}'],
    ['links and meta that are null', '{"data":[],"links":null,"meta":null}'],
  ])('may hold %s', (_case, text) => {
    expect(read(text)).toEqual({ items: [], paging: null })
  })

  it.each<[string, object]>([
    ['its total in meta', { meta: { total: 3 } }],
    ['its total beside data', { total: 3 }],
    ['its total, with links that are an empty list', { links: [], meta: { total: 3 } }],
    ['one page of one', { meta: { current_page: 1, last_page: 1, per_page: 25 } }],
    ['one page, without more', { current_page: 1, last_page: 1, next_page_url: null, has_more: false }],
    ['its total, without a cursor', { meta: { total: 3, next_cursor: null, next: '' } }],
  ])('may be a whole list without links, with %s', (_case, fields) => {
    const envelope = read(JSON.stringify({ data: [1, 2, 3], ...fields }))

    expect(envelope.paging).toBeNull()
    expect(textsOf(envelope)).toEqual(['1', '2', '3'])
  })

  it('may have white space around it, and a byte order mark before it', () => {
    const envelope = read(`\ufeff\r\n\t ${paged()} \n`)

    expect(textsOf(envelope)).toEqual(['{"id":1}', '{"id":2}'])
  })

  it('keeps the order of data whose keys are numbers, and every item of a key that came twice', () => {
    const envelope = read('{"data":{"10":{"id":1},"2":{"id":2},"2":{"id":3},"007":{"id":4}}}')

    expect(envelope.items.map(({ value }) => value)).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }, { id: 4 }])
  })

  it('takes the last of two data fields, as JSON.parse does', () => {
    expect(textsOf(read('{"data":[1],"data":[2.0,3]}'))).toEqual(['2.0', '3'])
  })

  it.each<[string, Fields, Partial<NonNullable<Envelope['paging']>>]>([
    [
      'texts',
      { meta: { current_page: '1', last_page: '2', total: '27' } },
      { currentPage: 1, lastPage: 2, total: 27 },
    ],
    ['a total that was merged to a list', { meta: { total: [27, 27] } }, { total: null }],
    [
      'no total and no last page (simplePaginate)',
      { meta: { total: undefined, last_page: undefined } },
      { total: null, lastPage: null },
    ],
    ['no meta', { meta: undefined }, { next: `${LIST}?page=2`, currentPage: null }],
    ['further fields', { meta: { summary: { sum: 1 } }, links: { more: 1 }, extra: [1] }, { total: 27 }],
    ['a next that is empty', { links: { next: '' } }, { next: '' }],
    ['no next', { links: { next: undefined } }, { next: undefined }],
    ['a success that is no truth value', { success: 'yes' }, { total: 27 }],
  ])('may have %s', (_case, fields, expected) => {
    const text = 'meta' in fields && fields.meta === undefined ? withoutMeta() : paged(fields)

    expect(read(text).paging).toMatchObject(expected)
  })

  it('takes nothing from a field called __proto__', () => {
    const item = '{"__proto__":{"id":9},"a":1}'
    const paging = '"links":{"__proto__":{"next":"https://evil.example"}},"meta":{"__proto__":{"total":9}}'

    const envelope = read(`{"data":[${item}],${paging},"__proto__":{"success":false}}`)

    expect(envelope.paging).toEqual({ next: undefined, currentPage: null, lastPage: null, total: null })
    expect(JSON.stringify(envelope.items[0]?.value)).toBe(item)
    expect(Object.hasOwn({}, 'next')).toBe(false)
  })

  it.each([
    ['{"h":[],"\\\\":0}', '{"h":[],"\\n":2}'],
    ['{"h":[],"\\n":0}', '{"h":[],"\\t":2}'],
    ['{"h":[],"\\u00e9":0}', '{"h":[],"\\u00e8":2}'],
  ])('keeps apart names of fields with escapes, which JSON.parse may not: %s, %s', (...items) => {
    const envelope = read(`{"data":[${items.join(',')}]}`)

    expect(envelope.items.map(({ value }) => JSON.stringify(value))).toEqual(
      items.map((item) => written(item)),
    )
  })

  it('may be nested 500 levels deep', () => {
    // The envelope and its list are two of them.
    expect(read(`{"data":[${deep(498)}]}`).items).toHaveLength(1)
  })
})

/** As JSON.stringify writes it: letters beyond ASCII without escapes. */
function written(item: string): string {
  return item.replace(/\\u([\da-f]{4})/g, (_escape, code: string) =>
    String.fromCodePoint(Number.parseInt(code, 16)),
  )
}

function withoutMeta(): string {
  const { meta: _, ...envelope } = JSON.parse(paged())
  return JSON.stringify(envelope)
}
