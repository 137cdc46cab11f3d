import { counted, grouped, inWords, printable } from '../text.ts'

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
  /** Since when the whole list is to be read at once; null: it is not. */
  alarm_since: string | null
  /** Why the API is not asked for what changed, though it is configured so; null: it is, or is not configured. */
  changed_since_off: string | null
}

export const ALARM = 'many more changes than usual in older pages: reading the whole list now'

/** Walks that take more of the time between two of them leave the rate limit to nothing else. */
const BUSY = 1 / 2

/** Shorter walks are nobody's trouble. */
const SHORTEST_MS = 5 * 60_000

/** Where the configuration asks for more than the rate limit carries: a line for each list that is read at once, one about the end that refreshes read, one about `changedSince`, and one about full walks. */
export function statusAdvice(lists: readonly ReadList[]): string[] {
  return [...aboutAlarms(lists), ...aboutNewest(lists), ...aboutChanges(lists), ...aboutWalks(lists)]
}

function aboutAlarms(lists: readonly ReadList[]): string[] {
  return lists
    .filter(({ alarm_since: since }) => since !== null)
    .map(({ organization, collection }) => `${printable(organization, 40)} ${collection}: ${ALARM}`)
}

/** How lists share what refreshes may use of a rate limit, as it was when each of them was refreshed last. None: nothing is known yet. */
export function refreshText(
  lists: readonly (Pick<ReadList, 'organization' | 'collection' | 'refreshed_every_ms'> & {
    rows: number
    refresh_share: number | null
  })[],
): string[] {
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
  const often =
    busiest === quietest
      ? `new rows are looked for every ${inWords(busiest)}`
      : `new rows of the busiest are looked for every ${inWords(busiest)}, of the quietest every ${inWords(quietest)}`
  const rate = Number(share.toPrecision(share < 10 ? 1 : 2))
  return [`${who} ${rate} requests a minute for refreshes: ${often}; older pages get ${older} of it`]
}

/** Of a reading of the newest end; a short list is read whole. */
function requestsOf(rows: number): number {
  const pages = pagesOf({ rows, perPage: 25 })
  return pages <= 4 ? pages + 1 : REFRESH_PAGES
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

/** What is known of the lists that share one budget. */
export interface AdviceFacts {
  lists: readonly { rows: number; perPage: number }[]
  /** Requests a minute that are ours. */
  requestsPerMinute: number
  /** How long the requests of a full walk of each take to leave, with what the budget allows now. Milliseconds. */
  walksMs: number
  /** Percent of them for refreshes. */
  sharePercent: number
  /** Minutes between two refreshes of a list, as wished. */
  every: number
  /** Minutes between two full walks, as configured; null if unknown. */
  betweenWalks: number | null
  /** The schedule that leaves so many; null if unknown. */
  schedule: string | null
}

interface Advice {
  /** The part of the budget that full walks of all these lists take together. */
  walk_minutes: number
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

/** A proposal for `schedule` and `refresh`. */
export function advise({ lists, requestsPerMinute: rate }: AdviceFacts): Advice {
  const walkMinutes = lists.reduce((sum, list) => sum + pagesOf(list), 0) / rate
  return { walk_minutes: walkMinutes, schedule: scheduleFor(walkMinutes)[1] }
}

/** A schedule of which full walks that take so long leave most of the time free, with the minutes between two of them. */
function scheduleFor(walkMinutes: number): readonly [minutes: number, schedule: string] {
  return SCHEDULES.find(([minutes]) => walkMinutes <= minutes * AT_MOST) ?? [7 * MINUTES_A_DAY, WEEKLY]
}

/** The pages of a list. */
export function pagesOf({ rows, perPage }: { rows: number; perPage: number }): number {
  return Math.max(1, Math.ceil(rows / Math.max(perPage, 1)))
}

/** Of one refresh of a list: so many show that nothing else is new. */
const REFRESH_PAGES = 2

/** The same in sentences. */
export function adviceText(
  advice: Advice,
  { lists, requestsPerMinute, walksMs, sharePercent, every, betweenWalks, schedule }: AdviceFacts,
): string[] {
  const rate = Number.isInteger(requestsPerMinute) ? grouped(requestsPerMinute) : String(requestsPerMinute)
  // One that is configured and fits is no worse than ours.
  const fits = betweenWalks !== null && advice.walk_minutes <= betweenWalks * AT_MOST
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
