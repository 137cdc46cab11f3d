import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseBody } from '../../src/api/body.ts'
import { type Envelope, readEnvelope } from '../../src/api/page.ts'
import { KnownError } from '../../src/errors.ts'
import { parseExact } from '../../src/json/exact.ts'
import { jsonTexts, spoiled } from '../json/arbitrary.ts'

const LIST = 'https://admin.example.com/api/v1/admin/orders'

function read(text: string, totals: 'check' | 'ignore' = 'check'): Envelope {
  return readEnvelope(parseBody(Buffer.from(text)), totals)
}

function errorOf(body: string | Uint8Array): KnownError {
  try {
    readEnvelope(parseBody(Buffer.from(body)), 'check')
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

  it('may have data whose keys are numbers, as PHP writes a list with holes', () => {
    expect(textsOf(read('{"data":{"2":{"id":2},"10":{"id":1}}}'))).toEqual(['{"id":2}', '{"id":1}'])
  })

  it('takes the last of two data fields, as JSON.parse does', () => {
    expect(textsOf(read('{"data":[1],"data":[2.0,3]}'))).toEqual(['2', '3'])
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
    ['a success in another spelling', { success: 'yes' }, { total: 27 }],
    ['a success that is 1', { success: 1 }, { total: 27 }],
    [
      'pages that are no numbers',
      { meta: { current_page: true, last_page: {}, per_page: 'n/a' } },
      { currentPage: null, lastPage: null, total: 27 },
    ],
    [
      'anything in what nobody reads',
      { meta: { from: -1, to: [], links: 7 }, links: { prev: 7 } },
      { total: 27 },
    ],
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

  it.each([-1, '1,024', 'n/a', 60.5, '', null, true, [1]])(
    'may have any total that is not to be counted by: %j',
    (total) => {
      expect(read(paged({ meta: { total } }), 'ignore').paging).toMatchObject({ total: null, lastPage: 2 })
      expect(read(JSON.stringify({ data: [1], meta: { total } }), 'ignore').paging).toBeNull()
    },
  )

  it('may have items nested 500 levels deep', () => {
    expect(read(`{"data":[${deep(500)}]}`).items).toHaveLength(1)
  })
})

function withoutMeta(): string {
  const { meta: _, ...envelope } = JSON.parse(paged())
  return JSON.stringify(envelope)
}

describe('an answer that is no list', () => {
  it.each<[string, string, string]>([
    ['an empty body', '', "the answer is empty; is api.baseUrl the API's address?"],
    ['white space', ' \r\n\t ', "the answer is empty; is api.baseUrl the API's address?"],
    [
      'a page of HTML',
      '<!DOCTYPE html><html><head><title>Log in</title></head></html>',
      "the answer is a page of HTML, not JSON (its title: Log in); is api.baseUrl the API's address, or does a login page or a proxy answer?",
    ],
    [
      'a text',
      'Too Many Attempts.',
      "the answer is not JSON: Too Many Attempts.; is api.baseUrl the API's address?",
    ],
    [
      'JSON with a comma too many',
      '{"data":[1,]}',
      `the answer is broken JSON (Unexpected token ']'): {"data":[1,]}; look at the server, or at a proxy before it`,
    ],
    [
      'two documents',
      '{"data":[]}{"data":[]}',
      'the answer is broken JSON (Unexpected non-whitespace character after JSON at position 11 (line 1 column 12)): {"data":[]}{"data":[]}; look at the server, or at a proxy before it',
    ],
    [
      'a warning of PHP before the list',
      '<br />\n<b>Warning</b>: Undefined variable $x\n{"data":[]}',
      'the answer is not JSON: Warning: Undefined variable $x\\u{a}{"data":[]}; is api.baseUrl the API\'s address?',
    ],
    [
      'XML',
      '<?xml version="1.0"?><data>no</data>',
      `the answer is not JSON: <?xml version="1.0"?>no; is api.baseUrl the API's address?`,
    ],
    ['null', 'null', 'the answer is null, not a list'],
    ['an object without data', '{"items":[]}', 'the answer has no "data"'],
    [
      'an error in other words',
      '{"error":"token_expired"}',
      'the answer has no "data" (message: token_expired)',
    ],
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
    ...['0', '"false"', '"0"', '"no"', '""', 'null', '{}', '12345678901234567890'].map(
      (no): [string, string, string] => [
        `a success that says no: ${no}`,
        `{"success":${no},"message":"over quota","data":[]}`,
        `the answer says "success": ${no} (message: over quota)`,
      ],
    ),
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

  it.each([-1, '9'.repeat(16), '1,024', 60.5, ''])(
    'may have a total that cannot be counted by: %j',
    (total) => {
      expect(errorOf(paged({ meta: { total } })).message).toBe(
        `meta.total is ${JSON.stringify(total)}, which is no number of items; if the total of this list means nothing, set total: ignore`,
      )
    },
  )

  it.each([
    ['an item is nested deeper than 500 levels', 501],
    ['an item is nested deeper than 500 levels', 100_000],
  ])('may have items nested too deep: %s, %i', (message, levels) => {
    expect(errorOf(`{"data":[${deep(levels)}]}`).message).toBe(message)
  })

  it('may be nested too deep to be read', () => {
    expect(errorOf(`{"data":[${deep(100_000)},1e400]}`).message).toBe('the answer is nested too deeply')
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
        message: `the answer breaks off after ${text.length} bytes; if it stays so, look at the server, or at a proxy before it`,
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
      message: 'the answer is not UTF-8 text; look at the server, or at a proxy before it',
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

  it('have their values, whatever is around them', () => {
    fc.assert(
      fc.property(fc.array(spaced), shape, space, (list, around, s) => {
        const joined = list.map(({ before, text, after }) => before + text + after).join(',')
        const values = list.map(({ text }) => JSON.stringify(parseExact(text)))

        const { items } = read(around(joined, s))

        expect(items.map(({ text }) => text)).toEqual(values)
        expect(items.map(({ value }) => JSON.stringify(value))).toEqual(values)
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
})

function isTakenForJson(body: string): boolean {
  try {
    read(body)
    return true
  } catch (error) {
    return !/not JSON|broken JSON|breaks off|is empty/.test(String(error))
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
