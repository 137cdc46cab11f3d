import { describe, expect, it } from 'vitest'
import { identifyItems, readKey } from '../../src/sync/items.ts'
import { jobOf } from '../helpers/jobs.ts'
import { pageOf } from '../helpers/pages.ts'
import { item } from '../store/columns/items.ts'

describe('the key of an item', () => {
  it.each([
    ['9007199254740993', '9007199254740993', true],
    ['9223372036854775808', '9223372036854775808', false],
    ['1.50', '1.5', false],
    ['"01"', '01', false],
    ['"7f3c-é😀"', '7f3c-é😀', false],
  ])('is read of %s as %s', (text, id, integer) => {
    expect(readKey(['id'], item(`{"id":${text}}`))).toEqual({ id, parts: [{ text: id, integer }] })
  })

  it('is read of several fields in order, dotted paths among them', () => {
    expect(readKey(['customer.id', 'line'], item('{"line":"a","customer":{"id":2}}'))).toEqual({
      id: '["2","a"]',
      parts: [
        { text: '2', integer: true },
        { text: 'a', integer: false },
      ],
    })
  })

  it.each(['x'.repeat(2400), '€'.repeat(800), '1'.repeat(2400)])('may have 2,400 bytes', (text) => {
    expect(readKey(['id'], item(`{"id":"${text}"}`))).toMatchObject({ id: text })
  })

  it.each([
    [['id'], '{"id":null}', 'key "id" is null'],
    [['id'], '{"id":true}', 'key "id" is neither text nor a number'],
    [['id'], '{"id":[1]}', 'key "id" is neither text nor a number'],
    [['id'], '{"id":""}', 'key "id" is an empty text'],
    [['id'], '{"id":"a\\u0000"}', 'key "id" holds a NUL character'],
    [['id'], '{"id":"a\\ud800"}', 'key "id" holds half of a surrogate pair'],
    [['id'], `{"id":"${'€'.repeat(801)}"}`, 'key "id" is longer than 2,400 bytes'],
    [['customer.id', 'line'], '{"line":1,"customer":null}', 'key "customer.id" is missing'],
    [['customer.id', 'line'], '{"line":1,"customer.id":1}', 'key "customer.id" is missing'],
    [['constructor.name'], '{}', 'key "constructor.name" is missing'],
  ])('%j is refused in %s', (paths, text, reason) => {
    expect(readKey(paths, item(text))).toBe(reason)
  })
})

const page = (...texts: string[]) => pageOf(texts, { number: 4 })

/** An item with a list in a list, and so on. */
const deep = (levels: number) => `{"id":${levels},"a":${'['.repeat(levels)}${']'.repeat(levels)}}`

describe('the items of a page', () => {
  it('have a reason instead of a key where no view could read them', () => {
    expect(identifyItems(jobOf(), page(deep(499), deep(500)))).toMatchObject([
      { id: '499' },
      { reject: 'is nested deeper than 500 levels' },
    ])
  })

  it.each([
    ['written otherwise', '{ "total": 2e1, "id": 1.0 }'],
    ['with its key as a text', '{"id":"1","total":20}'],
  ])('have one item that comes twice once: %s', (_how, again) => {
    const items = identifyItems(jobOf(), page('{"id":1,"total":20}', again))

    expect(items).toMatchObject([{ id: '1', item: { text: '{"id":1,"total":20}' } }])
  })

  it.each<[string, string[], string[], RegExp]>([
    ['a number and a text', ['id'], ['{"id":1,"a":1}', '{"id":"1","a":2}'], /items 2 and 3 .*\(id\)/],
    ['a path', ['customer.id'], ['{"customer":{"id":5}}', '{"customer":{"id":5},"b":1}'], /\(customer\.id\)/],
    ['two fields', ['id', 'line'], ['{"id":1,"line":2,"a":1}', '{"id":1,"line":2}'], /\(id, line\)/],
  ])('are refused where two of them have one key, which is %s', (_what, key, texts, message) => {
    const identify = () =>
      identifyItems(jobOf({ key }), page('{"id":7,"line":1,"customer":{"id":7}}', ...texts))

    expect(identify).toThrow(expect.objectContaining({ code: 'BAD_RESPONSE' }))
    expect(identify).toThrow(message)
    expect(identify).toThrow(/acme orders page 4/)
  })
})
