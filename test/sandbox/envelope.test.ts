import { describe, expect, it } from 'vitest'
import { createEnvelope } from '../../src/sandbox/envelope.ts'

const URL = 'http://api.test/orders'

function envelopeOf({ page = 1, total = 60, items = 25, filters = '' }) {
  const rows = Array.from({ length: items }, (_, id) => ({ id }))
  return createEnvelope({ page, total, url: URL, filters, items: rows, message: 'Done.' })
}

describe('createEnvelope', () => {
  it.each([
    [
      { page: 1, total: 60, items: 25 },
      { prev: null, next: 2, last: 3, from: 1, to: 25 },
    ],
    [
      { page: 2, total: 60, items: 25 },
      { prev: 1, next: 3, last: 3, from: 26, to: 50 },
    ],
    [
      { page: 3, total: 60, items: 10 },
      { prev: 2, next: null, last: 3, from: 51, to: 60 },
    ],
    [
      { page: 2, total: 50, items: 25 },
      { prev: 1, next: null, last: 2, from: 26, to: 50 },
    ],
    [
      { page: 1, total: 0, items: 0 },
      { prev: null, next: null, last: 1, from: null, to: null },
    ],
    [
      { page: 9, total: 60, items: 0 },
      { prev: 8, next: null, last: 3, from: null, to: null },
    ],
  ])('of %o', (asked, { prev, next, last, from, to }) => {
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

  it('puts the filters before the page in every link', () => {
    const envelope = envelopeOf({ page: 2, filters: 'state=paid' })

    const link = `${URL}?state=paid&page=`
    expect(envelope.links).toEqual({
      first: `${link}1`,
      last: `${link}3`,
      prev: `${link}1`,
      next: `${link}3`,
    })
  })

  it('has the names of Laravel in the order of Laravel', () => {
    const envelope = envelopeOf({})

    expect(Object.keys(envelope)).toEqual(['data', 'links', 'meta', 'success', 'message'])
    expect(Object.keys(envelope.links ?? {})).toEqual(['first', 'last', 'prev', 'next'])
    expect(Object.keys(envelope.meta ?? {})).toEqual([
      'current_page',
      'from',
      'last_page',
      'links',
      'path',
      'per_page',
      'to',
      'total',
    ])
  })
})
