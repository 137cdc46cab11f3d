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
}

export const ALARM = 'many more changes than usual in older pages: reading the whole list now'

/** A difference of less is no news. */
const LATER = 1.5

/** Walks that take more of the time between two of them leave the rate limit to nothing else. */
const BUSY = 1 / 2

/** Shorter walks are nobody's trouble. */
const SHORTEST_MS = 5 * 60_000

/** Where the configuration asks for more than the rate limit carries: a line about refreshes, one about the end that they read, and one about full walks. */
export function statusAdvice(lists: readonly ReadList[]): string[] {
  return [...aboutAlarms(lists), ...aboutRefreshes(lists), ...aboutNewest(lists), ...aboutWalks(lists)]
}

function aboutAlarms(lists: readonly ReadList[]): string[] {
  return lists
    .filter(({ alarm_since: since }) => since !== null)
    .map(({ organization, collection }) => `${printable(organization, 40)} ${collection}: ${ALARM}`)
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
  /** Minutes between two refreshes that the share allows. */
  refresh_every_minutes: number
  /** Requests of one refresh of all lists, and their part of the budget in percent. */
  refresh_requests: number
  refresh_percent: number
  /** Within how many minutes a change shows among so many of the newest rows of the largest list. */
  shown: { rows: number; minutes: number }[]
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
export function advise(facts: AdviceFacts): Advice {
  const { lists, requestsPerMinute: rate, sharePercent, every, betweenWalks } = facts
  const walkMinutes = lists.reduce((sum, list) => sum + pagesOf(list), 0) / rate
  const [interval, schedule] = scheduleFor(walkMinutes)
  const share = (sharePercent / 100) * rate
  const requests = REFRESH_PAGES * lists.length
  const refreshEvery = everyFor(requests, every, share)
  const [largest] = lists.toSorted((a, b) => pagesOf(b) - pagesOf(a))
  const left = Math.max(share - requests / refreshEvery, 0) / Math.max(lists.length, 1)
  return {
    walk_minutes: walkMinutes,
    schedule,
    refresh_every_minutes: refreshEvery,
    refresh_requests: requests,
    refresh_percent: (100 * requests) / (refreshEvery * rate),
    shown: largest ? bandsOf(largest, left, refreshEvery, betweenWalks ?? interval) : [],
  }
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

/** Minutes between two refreshes of all lists, which take so many requests. */
function everyFor(requests: number, wished: number, share: number): number {
  const minutes = Math.min(Math.max(wished, requests / share), MINUTES_A_DAY)
  return minutes < 1 ? Math.ceil(minutes * 60) / 60 : Math.ceil(minutes)
}

/**
 * The pages behind the newest are read in bands, each four times as deep as the one before and half as often. A band that
 * would be read less than twice between two walks is left to these.
 * @param pagesPerMinute What is left of the share.
 */
function bandsOf(
  list: { rows: number; perPage: number },
  pagesPerMinute: number,
  every: number,
  betweenWalks: number,
): Advice['shown'] {
  if (pagesPerMinute <= 0) return []
  const depths = depthsOf(pagesOf(list))
  while (depths.length > 0) {
    const load = depths.reduce((sum, depth, band) => sum + (depth - (depths[band - 1] ?? 1)) / 2 ** band, 0)
    const unit = load / pagesPerMinute
    if (unit * 2 ** (depths.length - 1) <= betweenWalks / 2)
      return depths.map((depth, band) => ({
        rows: Math.min(depth * list.perPage, list.rows),
        minutes: Math.max(every, unit * 2 ** band),
      }))
    depths.pop()
  }
  return []
}

/** The last page of each band. */
function depthsOf(pages: number): number[] {
  if (pages === 1) return []
  const count = Math.max(1, Math.ceil(Math.log2(pages) / 2))
  return Array.from({ length: count }, (_, band) => Math.min(4 ** (band + 1), pages))
}

/** The same in sentences. */
export function adviceText(
  advice: Advice,
  { lists, requestsPerMinute, walksMs, sharePercent, betweenWalks, schedule }: AdviceFacts,
): string[] {
  const rate = Number.isInteger(requestsPerMinute) ? grouped(requestsPerMinute) : String(requestsPerMinute)
  const some = [advice.shown[0], advice.shown.at(Math.floor(advice.shown.length / 2)), advice.shown.at(-1)]
  // Of bands that sound alike, the deepest says it all.
  const deepest = new Map(
    some.flatMap((band) => (band ? [[inMinutes(band.minutes), band.rows] as const] : [])),
  )
  const shown = [...deepest].map(([time, rows]) => `${time} among the newest ${grouped(rows)} rows`)
  // One that is configured and fits is no worse than ours.
  const fits = betweenWalks !== null && advice.walk_minutes <= betweenWalks * AT_MOST
  // What leaves at once takes as long as the server does, which one answer does not tell.
  const walks =
    walksMs > 0
      ? `about ${inWords(walksMs)} at ${rate} requests a minute`
      : `no more requests than leave at once, at ${rate} a minute`
  return [
    `full walks of ${counted(lists.length, 'list')} take ${walks}; schedule: "${(fits ? schedule : null) ?? advice.schedule}" leaves most of them free`,
    `refresh: { every: ${asDuration(advice.refresh_every_minutes)}, share: ${sharePercent} } shows new rows within ${inMinutes(advice.refresh_every_minutes)}, for about ${counted(Math.round(advice.refresh_requests), 'request')} each time (${Number(advice.refresh_percent.toPrecision(2))} % of the limit)`,
    ...(shown.length > 0
      ? [`with ${sharePercent} % of the limit, changes show within ${shown.join(', ')}`]
      : []),
  ]
}

function asDuration(minutes: number): string {
  return minutes < 1 ? `${Math.round(minutes * 60)}s` : `${minutes}m`
}

function inMinutes(count: number): string {
  return inWords(count * 60_000)
}
