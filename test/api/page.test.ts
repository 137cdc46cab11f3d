import { describe, expect, it } from 'vitest'
import { pageAddress } from '../../src/api/client.ts'
import { readPage } from '../../src/api/page.ts'
import { LOOK } from '../../src/api/response-errors.ts'
import { JobError, KnownError, RetryableError } from '../../src/errors.ts'
import type { Filters, Page } from '../../src/sync/types.ts'
import { pageText } from './helpers/api.ts'

function read(body: string | Uint8Array, totals: 'check' | 'ignore' = 'check', page = 1): Page {
  return readPage({ body: Buffer.from(body), headers: { 'content-type': 'text/x' } }, page, totals)
}

function errorOf(body: string | Uint8Array, page = 1): KnownError {
  try {
    read(body, 'check', page)
  } catch (error) {
    if (error instanceof KnownError) return error
    throw error
  }
  throw new Error('the body was accepted')
}

const json = JSON.stringify
const textsOf = (body: string) => read(body).items.map(({ text }) => text)

/** The first of two pages, with these fields in place of its own. */
const first = (fields: Record<string, unknown> = {}) => pageText(1, 2, fields)

const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

describe('a page', () => {
  it('has what the envelope says', () => {
    const items = [{ text: '{"id":1}', value: { id: 1 } }]
    expect(read(first())).toEqual({ number: 1, items, next: 2, total: 2, lastPage: 2 })
  })

  it.each<[string, string, Partial<Page>]>([
    [
      'numbers as texts',
      first({ meta: { current_page: '1', last_page: '2', total: '27' } }),
      { lastPage: 2, total: 27 },
    ],
    ['no meta', `{"data":[],"links":{"next":"?page=2"}}`, { next: 2, total: null, lastPage: null }],
    ['pages that are no numbers', first({ meta: { current_page: true, last_page: {} } }), { lastPage: null }],
    ['white space around it, and a byte order mark', `\ufeff\r\n\t ${first()} \n`, { total: 2 }],
    ['a total that Laravel merged of two', first({ meta: { total: [27, 27] } }), { total: null }],
  ])('may have %s', (_case, body, expected) => {
    expect(read(body)).toMatchObject(expected)
  })

  it.each([true, 1, '1', 'true', 'True', 'yes', 'ok', 'success'])('may have the success %j', (success) => {
    expect(read(first({ success }))).toMatchObject({ total: 2 })
  })

  it.each([-1, '1,024', 'n/a', 60.5, '', null, true, [1]])(
    'may have any total that is not to be counted by: %j',
    (total) => {
      const meta = { total, current_page: 1, last_page: 2 }
      expect(read(first({ meta }), 'ignore')).toMatchObject({ total: null, lastPage: 2 })
      expect(read(json({ data: [1], meta: { ...meta, last_page: 1 } }), 'ignore').total).toBeNull()
    },
  )

  it.each([
    ['a bare list', '[1,2,3]'],
    ['links and meta that are empty lists, as PHP writes an object', '{"data":[1,2,3],"links":[],"meta":[]}'],
    ['links and meta that are null', '{"data":[1,2,3],"links":null,"meta":null}'],
    ['its total in meta', '{"data":[1,2,3],"meta":{"total":3}}'],
    ['its total beside data, without a cursor', '{"data":[1,2,3],"total":"3","next_cursor":null,"next":""}'],
    ['one page of one', '{"data":[1,2,3],"meta":{"current_page":1,"last_page":1,"per_page":25}}'],
    ['keys that are numbers, as PHP writes a list with holes', '{"data":{"2":1,"7":2,"10":3}}'],
    ['two data fields, of which the last counts', '{"data":[0],"data":[1,2,3]}'],
  ])('may be a whole list: %s', (_case, body) => {
    const all = { next: null, total: null, isUnpaged: true }
    expect(read(body)).toMatchObject({ ...all, lastPage: null })
    expect(textsOf(body)).toEqual(['1', '2', '3'])
    expect(read(body, 'check', 2)).toEqual({ ...all, number: 2, items: [], lastPage: 1 })
  })

  it('has items with every field and number as it was sent, and takes nothing from a field called __proto__', () => {
    const item = '{"__proto__":{"id":9},"a":12345678901234567890}'
    const paging = '"links":{"next":null,"__proto__":{"next":"?page=2"}},"meta":{"__proto__":{"total":9}}'

    const { next, total } = read(`{"data":[${item}],${paging},"__proto__":{"success":false}}`)

    expect([next, total]).toEqual([null, null])
    expect(textsOf(`[${item}]`)).toEqual([item])
  })

  it('may have items nested 1,000 levels deep, and not 100,000', () => {
    expect(textsOf(`{"data":[${deep(1000)}]}`)).toHaveLength(1)
    expect(errorOf(`{"data":[${deep(100_000)}]}`).message).toBe('the answer is nested too deeply')
  })
})

const TITLED = '<!DOCTYPE html><html><head><title>Log in</title></head></html>'
const CHARACTER = 'position 2 (line 1 column 3); 4 bytes of text/x); look at the server'

describe('an answer that is no list', () => {
  it.each<[string, string | number[], string]>([
    ['an empty body', ' \r\n\t ', 'is empty; look at the server'],
    ['a page of HTML', TITLED, 'is a page of HTML, not JSON (its title: Log in); look at the server'],
    [
      'a text',
      '7;jane@private.example;DE00123',
      'after JSON at position 1 (line 1 column 2); 30 bytes of text/x); look at',
    ],
    [
      'broken JSON',
      '{"data":[1,]}',
      `is not JSON (Unexpected token ']'; 13 bytes of text/x); look at the server`,
    ],
    ['Latin 1', [0x5b, 0x22, 0xe9, 0x22, 0x5d], 'is not UTF-8 text; look at the server'],
    ['a list with half a character behind it', [0x5b, 0x5d, 0xe2, 0x82], CHARACTER],
    ['null', 'null', 'the answer is not a list'],
    ['an object without data', '{"items":[]}', '\'s "data" is not a list'],
    [
      'an error in other words',
      '{"error":"token_expired"}',
      '\'s "data" is not a list and says: token_expired',
    ],
    ['data that is one item', '{"data":{"id":7}}', '\'s "data" is not a list'],
    ...['false', '0', '"false"', '"no"', '""', 'null', '{}', '12345678901234567890'].map(
      (no): [string, string, string] => [
        `a success that says no: ${no}`,
        `{"success":${no},"message":"over quota","data":[]}`,
        '\'s "success" says no and says: over quota',
      ],
    ),
    ['links that are a text', '{"data":[1],"links":"x"}', '\'s "links" is not an object'],
    ['a total that is none', first({ meta: { total: '1,024' } }), 'means nothing, set total: ignore'],
    ['another page', first({ meta: { current_page: 2 } }), 'asked for page 1, but got page 2'],
  ])('may be %s', (_case, body, says) => {
    const error = errorOf(typeof body === 'string' ? body : Uint8Array.from(body))

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject({ code: 'BAD_RESPONSE', message: expect.stringContaining(says) })
  })

  it.each<[string, object]>([
    [
      "Laravel's flat paginator",
      { current_page: 1, last_page: 2, next_page_url: 'https://x?page=2', links: [] },
    ],
    ['a greater total', { meta: { total: 4 } }],
    ['a next', { meta: { total: 3 }, next: 2 }],
    ['a last page 2', { meta: { total: 3, current_page: 1, last_page: 2 } }],
    ['page 2', { meta: { total: 3, current_page: 2 } }],
    ['page 1 of nobody knows how many', { meta: { current_page: 1 } }],
    ['the length of a page', { meta: { per_page: 25 } }],
    ['a cursor', { meta: { total: 3, next_cursor: 'x' } }],
    ['a total in meta, and a greater one beside data', { total: 27, meta: { total: 3 } }],
  ])('may be a list of 3 that says there are more, without links: %s', (_case, fields) => {
    expect(errorOf(json({ data: [1, 2, 3], ...fields })).message).toMatch(
      /^the answer is paged \(it has .*\) but has no "links" to follow$/,
    )
  })

  it.each(['{"data":[{"email":"jane@private.example"}]]', '7;jane@private.example', '<br><b>jane</b>'])(
    'shows nothing of items: %s',
    (body) => {
      expect(errorOf(body).message).not.toMatch(/jane|email|data/)
    },
  )

  it('is shown in few words however long it is', () => {
    const long = 'x'.repeat(100_000)
    const bodies = [long, `<title>${long}</title>`, `{"message":"${long}"}`, `{"data":{"${long}":1}}`]

    expect(bodies.map((body) => errorOf(body).message.length).filter((length) => length > 300)).toEqual([])
  })
})

it('an answer that breaks off is asked for again, wherever it broke, also within a character', () => {
  const body = Buffer.from('{"data":[{"name":"é€😀\\"\\u00e9","list":[1,2.5,true]}],"success":true}')
  const broken = Array.from({ length: body.length - 1 }, (_, index) => body.subarray(0, index + 1))

  expect(broken.filter((part) => !(errorOf(part) instanceof RetryableError))).toEqual([])
})

const nextOf = (next: unknown, page = 1) =>
  read(first({ links: { next }, meta: { current_page: page } }), 'check', page).next

it.each([
  [null, true],
  ['?page=10', false],
])(
  'the last page in place of one past the end is an empty page there, if it is the end (links.next %j)',
  (next, isTaken) => {
    const body = JSON.stringify({
      data: [1],
      links: { next },
      meta: { current_page: 5, last_page: 5, total: 9 },
    })
    const taken = () => read(body, 'check', 9)

    if (isTaken) expect(taken()).toMatchObject({ number: 9, items: [], next: null, total: 9, lastPage: 5 })
    else expect(taken).toThrow('asked for page 9, but got page 5')
  },
)

const named = (page: string) => `names page ${page} instead of page 2`

describe('links.next', () => {
  it.each([
    ['was rewritten by a proxy', 'http://internal:9000/orders?page=2'],
    ['leaves the filters out, or carries others', '/orders?state=other&sort=id&page=2&per_page=25'],
    ['has a user, a fragment and encoded letters', 'https://user:word@x.example/?%70age=%32#page=9'],
  ])('leads to the next page where it %s', (_case, link) => {
    expect(nextOf(link)).toBe(2)
  })

  it.each([11, 99, 12_344])('leads on from page %d', (page) => {
    expect(nextOf(`?page=${page + 1}`, page)).toBe(page + 1)
  })

  it.each([
    ['is missing', undefined, 'is missing, so the end of the list is unknown'],
    ['is no text', 2, named('none')],
    ['is no URL', 'http://[', named('none')],
    ['has no page', 'https://x.example/orders', named('none')],
    ['has no number', '?page=token', named('none')],
    ['has a page that PHP reads as 1', '?page=02', named('02')],
    ['has two pages', '?page=2&page=2', named('2 and 2')],
    ['stays where it is', '?page=1', named('1')],
    ['skips a page', '?page=3', named('3')],
  ])('is refused where it %s', (_case, link, says) => {
    expect(() => nextOf(link)).toThrow(new JobError('LINK_REFUSED', `links.next ${says}; ${LOOK}`))
  })
})

it.each<[string, Filters, string]>([
  ['no filter', {}, 'page=7'],
  ['filters in their order', { b: '1', a: '2' }, 'b=1&a=2&page=7'],
  ['a list', { 'state[]': ['a', 'b'] }, 'state%5B%5D=a&state%5B%5D=b&page=7'],
  ['an empty value, and signs', { q: '', at: '2026+01&x' }, 'q=&at=2026%2B01%26x&page=7'],
])('the address of a page carries %s', (_case, filters, query) => {
  const { href } = pageAddress('https://x.example/proxied', '/orders', filters, 7)

  expect(href).toBe(`https://x.example/proxied/orders?${query}`)
})
