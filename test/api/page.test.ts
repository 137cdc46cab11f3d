import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { splitBody } from '../../src/api/body.ts'
import { type Envelope, readEnvelope } from '../../src/api/page.ts'
import { KnownError } from '../../src/errors.ts'
import { parseExact } from '../../src/json/exact.ts'
import { jsonTexts, numberTexts, spoiled } from '../json/arbitrary.ts'

const MOST_BYTES = 32 * 1024 * 1024

const LIST = 'https://admin.example.com/api/v1/admin/orders'

function read(text: string): Envelope {
  return readEnvelope(splitBody(Buffer.from(text), MOST_BYTES))
}

function errorOf(body: string | Uint8Array): KnownError {
  try {
    readEnvelope(splitBody(Buffer.from(body), MOST_BYTES))
  } catch (error) {
    if (error instanceof KnownError) return error
    throw error
  }
  throw new Error('the body was accepted')
}

interface Fields {
  links?: object
  meta?: object | undefined
  [name: string]: unknown
}

/** The paginated envelope as a server writes it, with some fields changed; undefined leaves one out. */
function paged({ links = {}, meta = {}, ...fields }: Fields = {}): string {
  return JSON.stringify({
    data: [{ id: 1 }, { id: 2 }],
    links: { first: `${LIST}?page=1`, last: `${LIST}?page=2`, prev: null, next: `${LIST}?page=2`, ...links },
    meta: {
      current_page: 1,
      from: 1,
      last_page: 2,
      links: [],
      path: LIST,
      per_page: 25,
      to: 25,
      total: 27,
      ...meta,
    },
    success: true,
    message: 'OK',
    ...fields,
  })
}

function textsOf(envelope: Envelope): string[] {
  return envelope.items.map(({ text }) => text)
}

function deep(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels)
}

describe('an envelope that is accepted', () => {
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
    ['one page of one', { meta: { current_page: 1, last_page: 1, per_page: 25 } }],
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

function inHalfAMegabyte(text: string) {
  return () => readEnvelope(splitBody(Buffer.from(text), 500_000))
}

describe('an answer that is no list', () => {
  it.each<[string, string, string]>([
    ['an empty body', '', 'the answer is empty'],
    ['white space', ' \r\n\t ', 'the answer is empty'],
    [
      'a page of HTML',
      '<!DOCTYPE html><html><head><title>Log in</title></head></html>',
      'the answer is a page of HTML, not JSON (its title: Log in)',
    ],
    ['a text', 'Too Many Attempts.', 'the answer is not JSON: Too Many Attempts.'],
    ['JSON with a comma too many', '{"data":[1,]}', 'the answer is not JSON: {"data":[1,]}'],
    ['null', 'null', 'the answer is null, not a list'],
    ['an object without data', '{"items":[]}', 'the answer has no "data"'],
    [
      'an error',
      '{"message":"Too Many Attempts."}',
      'the answer has no "data" (message: Too Many Attempts.)',
    ],
    [
      'success false with a message',
      '{"success":false,"message":"no\\u001b[0m","data":[]}',
      'the answer says "success": false (message: no\\u{1b}[0m)',
    ],
    ['data that is a text', '{"data":"x"}', '"data" is a string, not a list'],
    ['data that is one item', '{"data":{"id":7}}', '"data" is an object with the field id, not a list'],
    [
      'data with one field that is no number',
      '{"data":{"0":1,"x\\u0007":2}}',
      '"data" is an object with the field x\\u{7}, not a list',
    ],
    ['an empty message', '{"success":false,"message":""}', 'the answer says "success": false'],
    [
      "Laravel's flat paginator",
      '{"current_page":1,"data":[{"id":1}],"last_page":2,"next_page_url":"https://x?page=2","per_page":25,"total":27,"links":[]}',
      'the answer is paged (it has current_page, last_page, per_page, total, next_page_url) but has no "links" to follow',
    ],
    ['links that are a text', '{"data":[1],"links":"x"}', '"links" is a string, not an object'],
    [
      'a cursor',
      '{"data":[],"meta":{"next_cursor":"x"},"links":null}',
      'the answer is paged (it has next_cursor) but has no "links" to follow',
    ],
  ])('may be %s', (_case, text, message) => {
    const error = errorOf(text)

    expect(error.message).toBe(message)
    expect(error.name).toBe('JobError')
  })

  it.each<[string, object]>([
    ['a greater total', { meta: { total: 4 } }],
    ['two totals', { total: 3, meta: { total: 27 } }],
    ['a next', { meta: { total: 3 }, next: 2 }],
    ['a last page 2', { meta: { total: 3, current_page: 1, last_page: 2 } }],
    ['page 2', { meta: { total: 3, current_page: 2 } }],
    ['page 1 of nobody knows how many', { meta: { current_page: 1 } }],
    ['the length of a page', { meta: { per_page: 25 } }],
    ['a cursor', { meta: { total: 3, next_cursor: 'x' } }],
    ['a next page', { total: 3, next_page_url: '/orders?page=2' }],
  ])('may be a list of 3 without links, with %s', (_case, fields) => {
    const { message } = errorOf(JSON.stringify({ data: [1, 2, 3], ...fields }))

    expect(message).toMatch(/^the answer is paged \(it has .*\) but has no "links" to follow$/)
  })

  it.each<[string, Fields, string]>([
    ['a total below zero', { meta: { total: -1 } }, 'meta.total'],
    ['a total of too many digits', { meta: { total: '9'.repeat(16) } }, 'meta.total'],
    ['a current page that is a truth value', { meta: { current_page: true } }, 'meta.current_page'],
  ])('may be an envelope with %s', (_case, fields, place) => {
    const error = errorOf(paged(fields))

    expect(error.message).toContain(`the answer is not the list envelope: ${place}: `)
    expect(error.name).toBe('JobError')
  })

  it('may be an envelope with two defects, and names both', () => {
    const error = errorOf(paged({ meta: { total: -1, last_page: {} } }))

    expect(error.message).toMatch(/meta\.last_page: [^;]+; meta\.total: /)
  })

  it.each([
    ['501 levels', `{"data":[${deep(499)}]}`],
    ['100,000 levels', `{"data":[${deep(100_000)}]}`],
  ])('may be nested %s deep', (_case, text) => {
    expect(errorOf(text).message).toBe('the answer is nested deeper than 500 levels')
  })

  it.each([
    ['at the top', `[${'1,'.repeat(488)}1]`],
    ['under data', `{"data":[${'{},'.repeat(488)}{}]}`],
  ])('may have more items than so many bytes can hold, %s', (_case, text) => {
    expect(inHalfAMegabyte(text)).toThrow(
      'the answer has 489 items, too many for api.maxResponseBytes (500000 bytes)',
    )
    expect(inHalfAMegabyte(text.replace(/(1,|\{\},|"1":\{\},)/, ''))).not.toThrow()
  })

  it.each([
    ['in an item', `[{"a":[${'1,'.repeat(16_000)}1]}]`],
    ['beside the data', `{"data":[],"more":{"a":[${'1,'.repeat(16_000)}1]}}`],
  ])('may have more values than so many bytes can hold, %s', (_case, text) => {
    expect(inHalfAMegabyte(text)).toThrow(/has 1\d,\d{3} values, too many for api.maxResponseBytes/)
    expect(inHalfAMegabyte(text.replace(/(1,|\[\],){1000}/, ''))).not.toThrow()
  })

  it('is shown in few words however long it is', () => {
    const long = 'x'.repeat(100_000)
    const bodies = [long, `<title>${long}</title>`, `{"message":"${long}"}`, `{"data":{"${long}":1}}`]

    expect(bodies.map((body) => errorOf(body).message.length).filter((length) => length > 300)).toEqual([])
  })
})

describe('an answer that breaks off', () => {
  it.each(['{', '{"da', '{"data":[{"id":1},', '{"data":[{"id":1}]', '[1,2', ' [', '{"a":"\\', '{"a":"x\\"'])(
    'is retryable: %j',
    (text) => {
      expect(errorOf(text)).toMatchObject({
        name: 'RetryableError',
        message: `the answer breaks off after ${text.length} bytes`,
      })
    },
  )

  it('is retryable wherever it broke, also within a character', () => {
    const body = Buffer.from('{"data":[{"name":"é€😀"}],"success":true}')

    const broken = Array.from({ length: body.length - 1 }, (_, index) => body.subarray(0, index + 1))

    expect(broken.map((part) => errorOf(part).name)).toEqual(broken.map(() => 'RetryableError'))
  })

  it.each(['['.repeat(100_000), `[${'1,'.repeat(600_000)}`])(
    'may pass by itself though it is nested deeply, or has many items',
    (text) => {
      expect(errorOf(text).name).toBe('RetryableError')
    },
  )
})

describe('an answer that is not UTF-8', () => {
  it.each<[string, number[]]>([
    ['Latin 1', [0x5b, 0x22, 0xe9, 0x22, 0x5d]],
    ['UTF-16', [0xff, 0xfe, 0x5b, 0x00, 0x5d, 0x00]],
    ['a whole list with half a character behind it', [0x5b, 0x5d, 0xe2, 0x82]],
  ])('is refused for good: %s', (_case, bytes) => {
    expect(errorOf(Uint8Array.from(bytes))).toMatchObject({
      message: 'the answer is not UTF-8 text',
      name: 'JobError',
    })
  })
})

const space = fc.stringMatching(/^[ \n\r\t]{0,3}$/)
type Shape = (list: string, s: string) => string
const shape = fc.constantFrom<Shape>(
  (list, s) => `${s}[${s}${list}${s}]${s}`,
  (list, s) => `{${s}"data"${s}:${s}[${list}]${s},"success":true}${s}`,
  (list, s) =>
    `\ufeff{"message":"\\"data\\":[1]","meta":{"total":1}${s},"links":{"next":null}${s},"data":[${s}${list}]}`,
  (list, s) => `${s}{"data":[0],${s}"data":${s}[${s}${list}${s}]}`,
)

describe('items', () => {
  const spaced = fc.record({ before: space, text: jsonTexts, after: space })

  it('have the text that was sent and its value, whatever is around them', () => {
    fc.assert(
      fc.property(fc.array(spaced), shape, space, (list, around, s) => {
        const joined = list.map(({ before, text, after }) => before + text + after).join(',')

        const { items } = read(around(joined, s))

        expect(items.map(({ text }) => text)).toEqual(list.map(({ text }) => text))
        expect(items.map(({ value }) => JSON.stringify(value))).toEqual(
          list.map(({ text }) => JSON.stringify(parseExact(text))),
        )
      }),
    )
  })

  it('are taken from every body that JSON.parse accepts, and from no other', () => {
    const bodies = fc
      .tuple(fc.array(spaced, { maxLength: 4 }), shape, space)
      .map(([list, around, s]) =>
        around(list.map(({ before, text, after }) => before + text + after).join(','), s),
      )

    fc.assert(
      fc.property(spoiled(bodies), (body) => {
        expect(isTakenForJson(body)).toBe(isJson(body.replace(/^\ufeff/, '')))
      }),
      { numRuns: 5000 },
    )
  })

  it('have every number as it was written', () => {
    // Compact texts whose names neither repeat nor look like numbers: JSON.stringify returns them unchanged.
    const fields = fc.uniqueArray(fc.tuple(fc.stringMatching(/^[a-z]{1,3}$/), numberTexts), {
      selector: ([name]) => name,
    })
    const item = fields.map((pairs) => `{${pairs.map(([name, number]) => `"${name}":${number}`).join(',')}}`)

    fc.assert(
      fc.property(fc.array(fc.oneof(item, numberTexts)), (list) => {
        const { items } = read(`{"data":[${list.join(',')}]}`)

        expect(items.map(({ value }) => JSON.stringify(value))).toEqual(list)
      }),
    )
  })
})

function isTakenForJson(body: string): boolean {
  try {
    read(body)
    return true
  } catch (error) {
    return !/not JSON|breaks off|is empty/.test(String(error))
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
