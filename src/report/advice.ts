import { counted, grouped, inWords, printable } from '../text.ts'
import { ALARM } from './refresh-text.ts'

/** How a list was read, and what is configured for it. Times in milliseconds. */
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
  /** How often full walks begin by the schedule. Called for slow walks only: searching a schedule takes time. */
  walkEvery: () => number
  isRefreshed: boolean
  /** Since when the whole list is to be read at once; null: it is not. */
  alarm_since: string | null
  /** Why the API is not asked for what changed, though it is configured so; null: it is, or is not configured. */
  changed_since_off: string | null
}

/** A walk that takes more of its interval leaves no rate limit for anything else. */
const BUSY = 1 / 2

/** Shorter walks are never worth advice. */
const SHORTEST_MS = 5 * 60_000

/**
 * Where the configuration asks for more than the rate limit carries, or the API does not do as it says: a line for each list that is read
 * at once, one about the end that refreshes read, one about `changedSince`, and one about full walks.
 */
export function statusAdvice(lists: readonly ReadList[]): string[] {
  return [...aboutAlarms(lists), ...aboutNewest(lists), ...aboutChanges(lists), ...aboutWalks(lists)]
}

function aboutAlarms(lists: readonly ReadList[]): string[] {
  return lists
    .filter(({ alarm_since: since }) => since !== null)
    .map(({ organization, collection }) => `${printable(organization, 40)} ${collection}: ${ALARM}`)
}

/** A full walk found new rows where refreshes do not look, so these claim nothing. */
function aboutNewest(lists: readonly ReadList[]): string[] {
  const refuted = lists.find(
    ({ newest, newestConfigured, refreshed_every_ms: every }) =>
      newestConfigured !== 'auto' && newest === null && every !== null,
  )
  if (!refuted) return []
  const { organization, collection, newestConfigured: wrong } = refuted
  return [
    `refreshes of ${printable(organization, 40)} ${collection} read its ${wrong} page, since newest is ${wrong}, but new rows were found at its other end: newest: auto finds out by itself`,
  ]
}

function aboutChanges(lists: readonly ReadList[]): string[] {
  const off = lists.filter(({ changed_since_off: why }) => why !== null)
  const [first] = off
  if (!first) return []
  const name = `${printable(first.organization, 40)} ${first.collection}`
  const others = off.length === 1 ? '' : `, and of ${counted(off.length - 1, 'more list')},`
  return [`changedSince of ${name}${others} is off: ${printable(first.changed_since_off ?? '', 300)}`]
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
  const { organization, collection, took, walkEvery, isRefreshed } = slowest
  const [, schedule] = scheduleFor(took / 60_000)
  const meanwhile = isRefreshed ? ', and refreshes show new rows meanwhile' : ''
  return [
    `the last full walk of ${printable(organization, 40)} ${collection} took ${inWords(took)}, and one is due every ${inWords(walkEvery)}: schedule: "${schedule}" leaves most of the rate limit free${meanwhile}`,
  ]
}

function tookOf({ as_of: start, last_complete_at: end }: ReadList): number {
  return start === null || end === null ? 0 : Date.parse(end) - Date.parse(start)
}

/** What is known of the lists that share one budget. */
export interface AdviceFacts {
  lists: readonly { rows: number; perPage: number }[]
  /** Requests a minute that are ours. */
  requestsPerMinute: number
  /** How long sending all requests of one full walk of each list takes, at the present budget. Milliseconds. */
  walksMs: number
  /** Percent of them for refreshes. */
  sharePercent: number
  /** Minutes between two refreshes of a list, as wished. */
  every: number
  /** Minutes between two full walks, as configured; null if unknown. */
  betweenWalks: number | null
  /** The configured schedule with that interval; null if unknown. */
  schedule: string | null
}

interface Advice {
  /** Minutes that full walks of all these lists take. */
  walkMinutes: number
  /** A schedule that leaves most of the budget free. */
  schedule: string
}

const MINUTES_A_DAY = 1440

/** Walks should take at most this part of the time between two of them. */
const AT_MOST = 1 / 4

const SCHEDULES: readonly [number, string][] = [
  [15, '*/15 * * * *'],
  [60, '0 * * * *'],
  [180, '0 */3 * * *'],
  [360, '0 */6 * * *'],
  [720, '0 */12 * * *'],
  [MINUTES_A_DAY, '0 3 * * *'],
]
const WEEKLY = '0 3 * * 0'

/** A proposal for `schedule`. */
export function advise({ lists, requestsPerMinute: rate }: AdviceFacts): Advice {
  const walkMinutes = lists.reduce((sum, list) => sum + pagesOf(list), 0) / rate
  return { walkMinutes, schedule: scheduleFor(walkMinutes)[1] }
}

/** The most frequent schedule at which walks of this length leave most time free, and the minutes between two of them. */
function scheduleFor(walkMinutes: number): readonly [minutes: number, schedule: string] {
  return SCHEDULES.find(([minutes]) => walkMinutes <= minutes * AT_MOST) ?? [7 * MINUTES_A_DAY, WEEKLY]
}

/** The pages of a list. */
export function pagesOf({ rows, perPage }: { rows: number; perPage: number }): number {
  return Math.max(1, Math.ceil(rows / Math.max(perPage, 1)))
}

/** The advice in sentences. */
export function adviceText(
  advice: Advice,
  { lists, requestsPerMinute, walksMs, sharePercent, every, betweenWalks, schedule }: AdviceFacts,
): string[] {
  const rate = Number.isInteger(requestsPerMinute) ? grouped(requestsPerMinute) : String(requestsPerMinute)
  // One that is configured and fits is no worse than ours.
  const fits = betweenWalks !== null && advice.walkMinutes <= betweenWalks * AT_MOST
  // What leaves at once takes as long as the server does, which one answer does not tell.
  const walks =
    walksMs > 0
      ? `about ${inWords(walksMs)} at ${rate} requests a minute`
      : `no more requests than leave at once, at ${rate} a minute`
  return [
    `full walks of ${counted(lists.length, 'list')} take ${walks}; schedule: "${(fits ? schedule : null) ?? advice.schedule}" leaves most of them free`,
    `refresh: { every: ${asDuration(every)}, share: ${sharePercent} } reads the newest end of the busiest list every ${inWords(every * 60_000)}, others as often as their new rows are worth the requests, and older pages with what is left of ${sharePercent} %`,
  ]
}

function asDuration(minutes: number): string {
  return minutes < 1 ? `${Math.round(minutes * 60)}s` : `${minutes}m`
}
