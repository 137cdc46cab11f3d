import type { StatusRow } from '../store/core/status.ts'
import { END_COST, isWalkedWhole, PER_PAGE } from '../sync/refresh/price.ts'
import { counted, grouped, inWords, printable } from '../text.ts'

/** How a list was read, and what is configured for it. */
export interface AdvisedList
  extends Pick<StatusRow, 'organization' | 'collection' | 'as_of' | 'last_complete_at'> {
  /** How often full walks begin by the schedule, in milliseconds. Called for slow walks only: searching a schedule takes time. */
  walkEvery: () => number
  isRefreshed: boolean
}

/** A walk that takes a larger part of its interval leaves too little of the rate limit for anything else. */
const BUSY = 1 / 2

/** Shorter walks are never worth advice. */
const SHORTEST_WALK_MS = 5 * 60_000

/** Advice about full walks, where the configuration asks for more of them than the rate limit carries. */
export function statusAdvice(lists: readonly AdvisedList[]): string[] {
  const slow = lists.flatMap((list) => {
    const took = tookOf(list)
    if (took < SHORTEST_WALK_MS) return []
    const walkEvery = list.walkEvery()
    return took > BUSY * walkEvery ? [{ ...list, took, walkEvery }] : []
  })
  const [slowest] = slow.toSorted((a, b) => b.took / b.walkEvery - a.took / a.walkEvery)
  if (!slowest) return []
  const { organization, collection, took, walkEvery, isRefreshed } = slowest
  const schedule = scheduleFor(took / 60_000)
  const meanwhile = isRefreshed ? ', and refreshes show new rows meanwhile' : ''
  return [
    `the last full walk of ${printable(organization, 40)} ${collection} took ${inWords(took)}, and one is due every ${inWords(walkEvery)}: schedule: "${schedule}" leaves most of the rate limit free${meanwhile}`,
  ]
}

function tookOf({ as_of: start, last_complete_at: end }: AdvisedList): number {
  return start === null || end === null ? 0 : Date.parse(end) - Date.parse(start)
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

/** The most frequent schedule of which walks this long take at most a quarter. */
function scheduleFor(walkMinutes: number): string {
  return SCHEDULES.find(([minutes]) => walkMinutes <= minutes * AT_MOST)?.[1] ?? WEEKLY
}

/** What is known of the lists that share one budget. */
export interface AdviceFacts {
  lists: number
  /** Requests of one full walk of each list. */
  requests: number
  /** How long sending these takes, at the present budget. Milliseconds. */
  walksMs: number
  /** Requests a minute that are ours. */
  perMinute: number
  /** The most frequent schedule, and the minutes between two of its times; null if it has fewer than two. */
  configured: { schedule: string; minutes: number } | null
  /** The percentage of requests for refreshes, and milliseconds between two refreshes of a list. */
  refresh: { share: number; every: number }
}

/** What full walks take, and a schedule that leaves most requests free: the configured one if it does. */
export function walkAdvice({ lists, requests, walksMs, perMinute, configured, refresh }: AdviceFacts) {
  const minutes = requests / perMinute
  const fits = configured !== null && minutes <= configured.minutes * AT_MOST
  const schedule = fits ? configured.schedule : scheduleFor(minutes)
  const rate = Number.isInteger(perMinute) ? grouped(perMinute) : String(perMinute)
  // If all requests may leave at once, the time depends on the server, and one answer does not show how fast that is.
  const take =
    walksMs > 0
      ? `about ${inWords(walksMs)} at ${rate} requests a minute`
      : `no more requests than leave at once, at ${rate} a minute`
  const { share, every } = refresh
  const asTyped = every % 60_000 === 0 ? `${every / 60_000}m` : `${Math.round(every / 1000)}s`
  return {
    /** Whether the configured schedule comes again before full walks can end. */
    isTight: configured !== null && minutes > configured.minutes,
    schedule,
    walks: `full walks of ${counted(lists, 'list')} take ${take}; schedule: "${schedule}" leaves most requests free`,
    refreshes: `refresh: { every: ${asTyped}, share: ${share} } reads the newest end of the busiest list every ${inWords(every)}, other lists less often, the less often the fewer new rows they have, and older pages with the rest of ${share} %`,
  }
}

type RefreshedList = Pick<
  StatusRow,
  'organization' | 'collection' | 'rows' | 'refreshed_every_ms' | 'refresh_share'
>

/**
 * How lists share the part of a rate limit that refreshes may use, as of the last refresh of each. Empty while nothing is known.
 */
export function refreshText(lists: readonly RefreshedList[]): string[] {
  const known = lists.flatMap(({ refreshed_every_ms: every, rows, refresh_share: share }) =>
    every === null || share === null ? [] : [{ every, share, requests: requestsOf(rows) }],
  )
  const times = known.map(({ every }) => every)
  const [first] = lists
  if (!first || known.length === 0) return []
  const share = Math.max(...known.map((one) => one.share))
  const newest = known.reduce((sum, { every, requests }) => sum + (requests * 60_000) / every, 0)
  const left = Math.round(100 * Math.max(0, 1 - newest / share))
  const older = Math.abs(left - 50) <= 5 ? 'half' : `${left} %`
  const [busiest, quietest] = [Math.min(...times), Math.max(...times)]
  const organizations = new Set(lists.map(({ organization }) => organization)).size
  const whose =
    organizations === 1 ? printable(first.organization, 40) : counted(organizations, 'organization')
  const who =
    lists.length === 1
      ? `${whose} ${first.collection} has`
      : `${counted(lists.length, 'list')} of ${whose} share`
  const looks =
    busiest === quietest
      ? `new rows are looked for every ${inWords(busiest)}`
      : `new rows of the busiest are looked for every ${inWords(busiest)}, of the quietest every ${inWords(quietest)}`
  const rate = Number(share.toPrecision(share < 10 ? 1 : 2))
  return [`${who} ${rate} requests a minute for refreshes: ${looks}; older pages get ${older} of it`]
}

/** Requests of a reading of the newest end; a short list is read whole. */
function requestsOf(rows: number): number {
  const lastPage = Math.max(1, Math.ceil(rows / PER_PAGE))
  return isWalkedWhole({ lastPage }) ? lastPage + 1 : END_COST
}
