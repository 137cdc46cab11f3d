import { describe, expect, it } from 'vitest'
import { pageButtons, shownPages } from '../../src/sandbox/page-buttons.ts'

describe('shownPages', () => {
  it.each([
    [1, 1, '1'],
    [5, 13, '1 2 3 4 5 6 7 8 9 10 11 12 13'],
    [1, 14, '1 2 3 4 5 6 7 8 9 10 … 13 14'],
    [7, 20, '1 2 3 4 5 6 7 8 9 10 … 19 20'],
    [8, 20, '1 2 … 5 6 7 8 9 10 11 … 19 20'],
    [13, 20, '1 2 … 10 11 12 13 14 15 16 … 19 20'],
    [14, 20, '1 2 … 11 12 13 14 15 16 17 18 19 20'],
    [99, 20, '1 2 … 11 12 13 14 15 16 17 18 19 20'],
  ])('around page %i of %i', (page, lastPage, shown) => {
    expect(
      shownPages(page, lastPage)
        .map((number) => number ?? '…')
        .join(' '),
    ).toBe(shown)
  })
})

describe('pageButtons', () => {
  it('stand between the previous and the next page, and mark the present one', () => {
    const buttons = pageButtons({ page: 2, lastPage: 2, prev: '/1', next: null, link: (page) => `/${page}` })

    expect(buttons).toEqual([
      { url: '/1', label: '&laquo; Previous', active: false },
      { url: '/1', label: '1', active: false },
      { url: '/2', label: '2', active: true },
      { url: null, label: 'Next &raquo;', active: false },
    ])
  })

  it('show dots without a link where pages are left out', () => {
    const buttons = pageButtons({ page: 1, lastPage: 50, prev: null, next: '/2', link: (page) => `/${page}` })

    expect(buttons).toContainEqual({ url: null, label: '...', active: false })
  })
})
