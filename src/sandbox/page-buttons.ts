export interface PageButton {
  url: string | null
  label: string
  active: boolean
}

export interface PageButtonOptions {
  page: number
  lastPage: number
  prev: string | null
  next: string | null
  link: (page: number) => string
}

const EACH_SIDE = 3
// So far from an end of the list, the pages between there and here are still shown.
const NEAR_END = EACH_SIDE + 4

/** Laravel's `meta.links`: the buttons below a table. No client needs them, every client gets them. */
export function pageButtons({ page, lastPage, prev, next, link }: PageButtonOptions): PageButton[] {
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
export function shownPages(page: number, lastPage: number): (number | null)[] {
  if (lastPage < EACH_SIDE * 2 + 8) return range(1, lastPage)
  if (page <= NEAR_END) return [...range(1, NEAR_END + EACH_SIDE), null, lastPage - 1, lastPage]
  if (page > lastPage - NEAR_END) return [1, 2, null, ...range(lastPage - NEAR_END - EACH_SIDE + 1, lastPage)]
  return [1, 2, null, ...range(page - EACH_SIDE, page + EACH_SIDE), null, lastPage - 1, lastPage]
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, offset) => from + offset)
}
