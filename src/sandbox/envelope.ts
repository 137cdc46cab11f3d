import { pageButtons } from './page-buttons.ts'

/** Fixed by the API: a client cannot change it. */
export const PAGE_SIZE = 25

export interface Page {
  /** As asked for, also beyond the end. */
  page: number
  /** Items that pass the filters. */
  total: number
  /** Absolute URL of the list, without a query. */
  url: string
  /** Encoded filters that every link carries, or ''. */
  filters: string
  items: readonly Record<string, unknown>[]
  message: string
}

/** The answer of a list endpoint, with the names and the order of Laravel's paginator. */
export function createEnvelope({ page, total, url, filters, items, message }: Page): Record<string, unknown> {
  const lastPage = Math.max(1, Math.ceil(total / PAGE_SIZE))
  const link = (number: number) => `${url}?${filters}${filters === '' ? '' : '&'}page=${number}`
  const prev = page > 1 ? link(page - 1) : null
  const next = page < lastPage ? link(page + 1) : null
  const from = items.length === 0 ? null : (page - 1) * PAGE_SIZE + 1
  return {
    data: items,
    links: { first: link(1), last: link(lastPage), prev, next },
    meta: {
      current_page: page,
      from,
      last_page: lastPage,
      links: pageButtons({ page, lastPage, prev, next, link }),
      path: url,
      per_page: PAGE_SIZE,
      to: from === null ? null : from + items.length - 1,
      total,
    },
    success: true,
    message,
  }
}
