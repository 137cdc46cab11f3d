import { counted, inWords, printable } from '../text.ts'
import { scheduleFor } from './advice.ts'

/** What a list was read like, and what is configured for it. Times in milliseconds. */
export interface ReadList {
  organization: string
  collection: string
  /** Start and end of the last complete full walk, ISO 8601; null before the first one. */
  as_of: string | null
  last_complete_at: string | null
  /** As the rate limit allowed last; null before the first refresh. */
  refreshed_every_ms: number | null
  /** Where new items appear, as found, and as configured. */
  newest: string | null
  newestConfigured: 'auto' | 'first' | 'last'
  /** How often full walks begin by the schedule. Asked for of slow walks alone: to search the schedule takes a while. */
  walkEvery: () => number
  refresh: { every: number; share: number } | false
}

/** A difference of less is no news. */
const LATER = 1.5

/** Walks that take more of the time between two of them leave the rate limit to nothing else. */
const BUSY = 1 / 2

/** Shorter walks are nobody's trouble. */
const SHORTEST_MS = 5 * 60_000

/** Where the configuration asks for more than the rate limit carries: a line about refreshes, one about the end that they read, and one about full walks. */
export function statusAdvice(lists: readonly ReadList[]): string[] {
  return [...aboutRefreshes(lists), ...aboutNewest(lists), ...aboutWalks(lists)]
}

function aboutRefreshes(lists: readonly ReadList[]): string[] {
  const late = lists.flatMap(({ refresh, refreshed_every_ms: often }) =>
    refresh !== false && often !== null && often > LATER * refresh.every ? [{ ...refresh, often }] : [],
  )
  const [rarest] = late.toSorted((a, b) => b.often - a.often)
  if (!rarest) return []
  const { often, every, share } = rarest
  return [
    `new rows of ${counted(late.length, 'list')} are looked for every ${inWords(often)}, not every ${inWords(every)}: the rate limit allows no more with refresh.share ${share}`,
  ]
}

/** A full walk found new rows where refreshes do not look, so these claim nothing. */
function aboutNewest(lists: readonly ReadList[]): string[] {
  const refuted = lists.filter(
    ({ newest, newestConfigured, refreshed_every_ms: often }) =>
      newestConfigured !== 'auto' && newest === null && often !== null,
  )
  return refuted
    .slice(0, 1)
    .map(
      ({ organization, collection, newestConfigured: wrong }) =>
        `refreshes of ${printable(organization, 40)} ${collection} read its ${wrong} page, since newest is ${wrong}, but new rows were found at its other end: newest: auto finds out by itself`,
    )
}

function aboutWalks(lists: readonly ReadList[]): string[] {
  const slow = lists.flatMap((list) => {
    const took = tookOf(list)
    if (took < SHORTEST_MS) return []
    const walkEvery = list.walkEvery()
    return took > BUSY * walkEvery ? [{ ...list, took, walkEvery }] : []
  })
  const [slowest] = slow.toSorted((a, b) => b.took / b.walkEvery - a.took / a.walkEvery)
  if (!slowest) return []
  const { organization, collection, took, walkEvery, refresh } = slowest
  const [, schedule] = scheduleFor(took / 60_000)
  const meanwhile = refresh === false ? '' : ', and refreshes show new rows meanwhile'
  return [
    `the last full walk of ${printable(organization, 40)} ${collection} took ${inWords(took)}, and one is due every ${inWords(walkEvery)}: schedule: "${schedule}" leaves most of the rate limit free${meanwhile}`,
  ]
}

function tookOf({ as_of: start, last_complete_at: end }: ReadList): number {
  return start === null || end === null ? 0 : Date.parse(end) - Date.parse(start)
}
