import { describe, expect, it } from 'vitest'
import { createEnvelope, phpJson } from '../../src/sandbox/envelope.ts'

const URL = 'http://api.test/orders'

function envelopeOf({ page = 1, total = 60, items = 25, filters = '' }) {
  const rows = Array.from({ length: items }, (_, id) => ({ id }))
  return createEnvelope({ page, total, url: URL, filters, items: rows, message: 'Done.' })
}

describe('createEnvelope', () => {
  it.each([
    { page: 1, total: 60, items: 25, prev: null, next: 2, last: 3, from: 1, to: 25 },
    { page: 2, total: 60, items: 25, prev: 1, next: 3, last: 3, from: 26, to: 50 },
    { page: 3, total: 60, items: 10, prev: 2, next: null, last: 3, from: 51, to: 60 },
    { page: 2, total: 50, items: 25, prev: 1, next: null, last: 2, from: 26, to: 50 },
    { page: 1, total: 0, items: 0, prev: null, next: null, last: 1, from: null, to: null },
    { page: 9, total: 60, items: 0, prev: 8, next: null, last: 3, from: null, to: null },
  ])('of page $page of $total', ({ prev, next, last, from, to, ...asked }) => {
    const envelope = envelopeOf(asked)

    const link = (page: number | null) => (page === null ? null : `${URL}?page=${page}`)
    expect(envelope).toMatchObject({
      links: { first: link(1), last: link(last), prev: link(prev), next: link(next) },
      meta: {
        current_page: asked.page,
        from,
        last_page: last,
        path: URL,
        per_page: 25,
        to,
        total: asked.total,
      },
      success: true,
      message: 'Done.',
    })
  })
})

describe('phpJson', () => {
  it.each([
    ['slashes are escaped', 'a/b', String.raw`"a\/b"`],
    ['letters beyond ASCII are escaped in lower case', 'Zoë É', String.raw`"Zo\u00eb \u00c9"`],
    ['a sign beyond 16 bits becomes two', '🙂', String.raw`"\ud83d\ude42"`],
    ['a whole float loses its fraction', { price: 20.0 }, '{"price":20}'],
    [
      'an exact number keeps every digit',
      { n: JSON.rawJSON('12345678901234567890') },
      '{"n":12345678901234567890}',
    ],
  ])('%s', (_, value, text) => {
    expect(phpJson(value)).toBe(text)
  })
})
