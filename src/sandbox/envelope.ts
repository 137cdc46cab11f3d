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

interface PageButton {
  url: string | null
  label: string
  active: boolean
}

interface PageButtonOptions {
  page: number
  lastPage: number
  prev: string | null
  next: string | null
  link: (page: number) => string
}

const EACH_SIDE = 3
// Up to this page from an end of the list, no pages are left out in between.
const NEAR_END = EACH_SIDE + 4

/** Laravel's `meta.links`: the buttons below a table, which every client gets and none needs. */
function pageButtons({ page, lastPage, prev, next, link }: PageButtonOptions): PageButton[] {
  const numbers = shownPages(page, lastPage).map((shown) =>
    shown === null
      ? { url: null, label: '...', active: false }
      : { url: link(shown), label: String(shown), active: shown === page },
  )
  return [
    { url: prev, label: '&laquo; Previous', active: false },
    ...numbers,
    { url: next, label: 'Next &raquo;', active: false },
  ]
}

/** Page numbers from the first to the last, null where some are left out. */
function shownPages(page: number, lastPage: number): (number | null)[] {
  if (lastPage < EACH_SIDE * 2 + 8) return range(1, lastPage)
  if (page <= NEAR_END) return [...range(1, NEAR_END + EACH_SIDE), null, lastPage - 1, lastPage]
  if (page > lastPage - NEAR_END) return [1, 2, null, ...range(lastPage - NEAR_END - EACH_SIDE + 1, lastPage)]
  return [1, 2, null, ...range(page - EACH_SIDE, page + EACH_SIDE), null, lastPage - 1, lastPage]
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, offset) => from + offset)
}

/** JSON text as PHP's json_encode writes it: no spaces, slashes escaped, everything beyond ASCII as \uXXXX. */
export function phpJson(value: unknown): string {
  return JSON.stringify(value).replace(/[/\u0080-\uffff]/g, escapeUnit)
}

function escapeUnit(unit: string): string {
  return unit === '/' ? '\\/' : `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}
