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

/** The body of a list, with the names and the order of Laravel's paginator. */
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
      links: pageButtons(page, link(page), prev, next),
      path: url,
      per_page: PAGE_SIZE,
      to: from === null ? null : from + items.length - 1,
      total,
    },
    success: true,
    message,
  }
}

/** Laravel's `meta.links`: buttons below a table, which every client gets and none needs; here without those of other pages. */
function pageButtons(page: number, own: string, prev: string | null, next: string | null) {
  return [
    { url: prev, label: '&laquo; Previous', active: false },
    { url: own, label: String(page), active: true },
    { url: next, label: 'Next &raquo;', active: false },
  ]
}

/** JSON text as PHP's json_encode writes it: no spaces, slashes escaped, everything beyond ASCII as \uXXXX. */
export function phpJson(value: unknown): string {
  return JSON.stringify(value).replace(/[/\u0080-\uffff]/g, escapeUnit)
}

function escapeUnit(unit: string): string {
  return unit === '/' ? '\\/' : `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}
