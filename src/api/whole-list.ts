import { z } from 'zod'

// Numbers come as texts where they were taken from the request. Two sources that both set a field make a list of it
// (Laravel merges them so): such a number cannot be trusted and is taken as not given.
export const count = z
  .union([
    z.int().min(0),
    z
      .string()
      .regex(/^\d{1,15}$/)
      .transform(Number),
    z.array(z.unknown()).transform(() => null),
  ])
  .nullish()
  .transform((value) => value ?? null)

/** What fields without links may say if the list is whole: where it stands, and no word of more. */
const Whole = z.looseObject({
  current_page: count.pipe(z.literal([1, null])),
  last_page: count.pipe(z.literal([1, null])),
  total: count,
  ...Object.fromEntries(
    ['next', 'next_page_url', 'next_cursor', 'cursor', 'has_more'].map((name) => [
      name,
      z.literal([null, false, '']).optional(),
    ]),
  ),
})

/**
 * Whether an answer that has paging fields but no links is the whole list all the same: its total is the number of its
 * items, or it says that it is page 1 of 1, and nothing in it says otherwise. `places` are the objects in which such
 * fields may stand, the envelope and its `meta`.
 */
export function isWholeList(places: readonly Record<string, unknown>[], items: number): boolean {
  const checked = places.map((place) => Whole.safeParse(place))
  if (!checked.every(({ success }) => success)) return false
  const found = checked.flatMap(({ data }) => (data ? [data] : []))
  const totals = found.map(({ total }) => total).filter((total) => total !== null)
  if (totals.some((total) => total !== items)) return false
  return totals.length > 0 || found.some((place) => place.current_page === 1 && place.last_page === 1)
}
