import { describe, expect, it } from 'vitest'
import { splitBody } from '../../src/api/body.ts'
import { readEnvelope } from '../../src/api/page.ts'
import { errorOf, type Fields, paged } from './helpers/envelope.ts'

function inHalfAMegabyte(text: string) {
  return () => readEnvelope(splitBody(Buffer.from(text), 500_000))
}

function deep(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels)
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
    [
      'HTML with a title of control characters',
      '<title>\u001b[31m</title>',
      'the answer is a page of HTML, not JSON (its title: \\u{1b}[31m)',
    ],
    ['a warning', '<br />\n<b>Warning</b>: x in y.php{"data":[]}', 'the answer is a page of HTML, not JSON'],
    ['a text', 'Too Many Attempts.', 'the answer is not JSON: Too Many Attempts.'],
    ['JSON with a comma too many', '{"data":[1,]}', 'the answer is not JSON: {"data":[1,]}'],
    ['JSON with more behind it', '{"data":[]} {}', 'the answer is not JSON: {"data":[]} {}'],
    ['null', 'null', 'the answer is null, not a list'],
    ['a number', '12', 'the answer is a number, not a list'],
    ['a JSON text', '"data"', 'the answer is a string, not a list'],
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
    ['two data fields of which the last is none', '{"data":[1],"data":null}', '"data" is null, not a list'],
    [
      "Laravel's flat paginator",
      '{"current_page":1,"data":[{"id":1}],"last_page":2,"next_page_url":"https://x?page=2","per_page":25,"total":27,"links":[]}',
      'the answer is paged (it has current_page, last_page, per_page, total, next_page_url) but has no "links" to follow',
    ],
    ['links that are a text', '{"data":[1],"links":"x"}', '"links" is a string, not an object'],
    ['links that are a list', '{"data":[1],"links":[{"next":null}]}', '"links" is a list, not an object'],
    [
      'a cursor',
      '{"data":[],"meta":{"next_cursor":"x"},"links":null}',
      'the answer is paged (it has next_cursor) but has no "links" to follow',
    ],
  ])('may be %s', (_case, text, message) => {
    const error = errorOf(text)

    expect(error.message).toBe(message)
    expect(error.retryable).toBe(false)
  })

  it.each<[string, object]>([
    ['a greater total', { meta: { total: 4 } }],
    ['two totals', { total: 3, meta: { total: 27 } }],
    ['a total that is none', { meta: { total: 'three' } }],
    ['a last page 2', { meta: { total: 3, current_page: 1, last_page: 2 } }],
    ['page 2', { meta: { total: 3, current_page: 2 } }],
    ['page 1 of nobody knows how many', { meta: { current_page: 1 } }],
    ['page 1 of 1 in two places', { current_page: 1, meta: { last_page: 1 } }],
    ['the length of a page', { meta: { per_page: 25 } }],
    ['more', { meta: { total: 3, has_more: true } }],
    ['a cursor', { meta: { total: 3, next_cursor: 'x' } }],
    ['a next page', { total: 3, next_page_url: '/orders?page=2' }],
  ])('may be a list of 3 without links, with %s', (_case, fields) => {
    const { message } = errorOf(JSON.stringify({ data: [1, 2, 3], ...fields }))

    expect(message).toMatch(/^the answer is paged \(it has .*\) but has no "links" to follow$/)
  })

  it.each<[string, Fields, string]>([
    ['a next that is a number', { links: { next: 2 } }, 'links.next'],
    ['a total below zero', { meta: { total: -1 } }, 'meta.total'],
    ['a total that is a fraction', { meta: { total: 1.5 } }, 'meta.total'],
    ['a total of too many digits', { meta: { total: '9'.repeat(16) } }, 'meta.total'],
    ['a current page that is a truth value', { meta: { current_page: true } }, 'meta.current_page'],
  ])('may be an envelope with %s', (_case, fields, place) => {
    const error = errorOf(paged(fields))

    expect(error.message).toContain(`the answer is not the list envelope: ${place}: `)
    expect(error.retryable).toBe(false)
  })

  it('may be an envelope with two defects, and names both', () => {
    const error = errorOf(paged({ meta: { total: -1, last_page: {} } }))

    expect(error.message).toMatch(/meta\.last_page: [^;]+; meta\.total: /)
  })

  it.each([
    ['501 levels', `{"data":[${deep(499)}]}`],
    ['100,000 levels', `{"data":[${deep(100_000)}]}`],
    ['100,000 levels at the top', deep(100_000)],
    ['100,000 levels beside the data', `{"data":[],"meta":${deep(100_000)},"links":{"next":null}}`],
  ])('may be nested %s deep', (_case, text) => {
    expect(errorOf(text).message).toBe('the answer is nested deeper than 500 levels')
  })

  it.each([
    ['at the top', `[${'1,'.repeat(488)}1]`],
    ['under data', `{"data":[${'{},'.repeat(488)}{}]}`],
    ['under data that is an object', `{"data":{${'"1":{},'.repeat(488)}"1":{}}}`],
  ])('may have more items than so many bytes can hold, %s', (_case, text) => {
    expect(inHalfAMegabyte(text)).toThrow(
      'the answer has 489 items, too many for api.maxResponseBytes (500000 bytes)',
    )
    expect(inHalfAMegabyte(text.replace(/(1,|\{\},|"1":\{\},)/, ''))).not.toThrow()
  })

  it.each([
    ['in an item', `[{"a":[${'1,'.repeat(16_000)}1]}]`],
    ['that are empty', `[{"a":[${'[],'.repeat(8000)}1]}]`],
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
        retryable: true,
        message: `the answer breaks off after ${text.length} bytes`,
      })
    },
  )

  it('is retryable wherever it broke, also within a character', () => {
    const body = Buffer.from('{"data":[{"name":"é€😀"}],"success":true}')

    const broken = Array.from({ length: body.length - 1 }, (_, index) => body.subarray(0, index + 1))

    expect(broken.map((part) => errorOf(part).retryable)).toEqual(broken.map(() => true))
  })

  it.each(['['.repeat(100_000), `[${'1,'.repeat(600_000)}`])(
    'may pass by itself though it is nested deeply, or has many items',
    (text) => {
      expect(errorOf(text).retryable).toBe(true)
    },
  )
})

describe('an answer that is not UTF-8', () => {
  it.each<[string, number[]]>([
    ['Latin 1', [0x5b, 0x22, 0xe9, 0x22, 0x5d]],
    ['a surrogate', [0x5b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x5d]],
    ['UTF-16', [0xff, 0xfe, 0x5b, 0x00, 0x5d, 0x00]],
    ['a whole list with half a character behind it', [0x5b, 0x5d, 0xe2, 0x82]],
    ['a character that is longer than any', [0x5b, 0x22, 0xf0, 0x80, 0x80, 0x80]],
    ['bytes of no meaning', [0x1f, 0x8b, 0x08, 0x00]],
  ])('is refused for good: %s', (_case, bytes) => {
    expect(errorOf(Uint8Array.from(bytes))).toMatchObject({
      message: 'the answer is not UTF-8 text',
      retryable: false,
    })
  })
})
