import { describe, expect, it } from 'vitest'
import { pageAddress } from '../../src/api/client.ts'
import { nextPage } from '../../src/api/page.ts'
import { JobError } from '../../src/errors.ts'
import type { Filters } from '../../src/sync/types.ts'

const LIST = 'https://admin.example.com/api/v1/admin/orders'

describe('links.next', () => {
  it('that is null ends the list', () => {
    expect(nextPage(null, 1)).toBeNull()
  })

  it.each([
    ['is the plain link', `${LIST}?page=2`],
    ['was rewritten by a proxy', 'http://internal:9000/orders?page=2'],
    ['leaves the filters out, or carries others', `${LIST}?state=other&sort=id&page=2&per_page=25`],
    ['has a user, a fragment and encoded letters', 'https://user:word@x.example/?%70age=%32#page=9'],
    ['is relative', '?page=2'],
    ['is long', `?${'q=x&'.repeat(100_000)}page=2`],
  ])('leads to the next page where it %s', (_case, link) => {
    expect(nextPage(link, 1)).toBe(2)
  })

  it.each([
    ['is missing', undefined, 'is missing, so the end of the list is unknown'],
    ['is empty', '', 'names no page'],
    ['is no text', 2, 'names no page'],
    ['is no URL', 'http://[', 'names no page'],
    ['has no page', LIST, 'names no page'],
    ['has a page that PHP reads as 1', '?page=02', 'names no page'],
    ['has a page of other letters', '?page=two', 'names no page'],
    ['has a page of too many digits', `?page=${'2'.repeat(3_000_000)}`, 'names no page'],
    ['has two pages', '?page=2&page=2', 'names two pages'],
    ['stays where it is', '?page=1', 'leads from page 1 to page 1'],
    ['skips a page', '?page=3', 'leads from page 1 to page 3'],
    ['goes back', '?page=0', 'leads from page 1 to page 0'],
  ])('is refused where it %s', (_case, link, says) => {
    expect(() => nextPage(link, 1)).toThrow(new JobError('LINK_REFUSED', `links.next ${says}`))
  })
})

describe('the address of a page', () => {
  it.each<[string, Filters, string]>([
    ['no filter', {}, 'page=7'],
    ['filters in their order', { b: '1', a: '2' }, 'b=1&a=2&page=7'],
    ['a list', { 'state[]': ['a', 'b'] }, 'state%5B%5D=a&state%5B%5D=b&page=7'],
    [
      'an empty value, and signs',
      { q: '', since: '2026-11-20T08:30:00+01:00&x' },
      'q=&since=2026-11-20T08%3A30%3A00%2B01%3A00%26x&page=7',
    ],
  ])('carries %s', (_case, filters, query) => {
    expect(pageAddress('https://x.example/proxied', '/orders', filters, 7).href).toBe(
      `https://x.example/proxied/orders?${query}`,
    )
  })
})
