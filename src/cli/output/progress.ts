import { allowedPerMinute } from '../../api/rate/budget.ts'
import type { Config } from '../../config/config.ts'
import { type Pace, timeLeft } from '../../report/time-left.ts'
import type { JobEvent } from '../../sync/job.ts'
import { ownerName } from '../../sync/owner-work.ts'
import type { VerifyEvent } from '../../sync/verify.ts'
import { counted, grouped, inWords, printable } from '../../text.ts'

/** How far a list is. Times are epoch milliseconds. */
export type Progress = ReturnType<typeof newProgress>

/** @param budget Lists with the same budget share a rate limit. */
export function newProgress(label: string, budget: string) {
  return {
    label: printable(label, 60),
    budget,
    /** When its first request left; null: none has. */
    begunAt: null as number | null,
    requests: 0,
    /** Answers of this run. */
    pages: 0,
    /** The page read last, and the last of the list, if that is known. */
    page: 0,
    lastPage: null as number | null,
    rows: 0,
    /** How long it waited for its rate limit. */
    waitedMs: 0,
    /** What it waits for, and until when. */
    wait: null as { reason: string; since: number; until: number } | null,
    /** Requests a minute that its rate limit lets us send; null: no limit is known. */
    perMinute: null as number | null,
    /** Which other process has it; null: none. */
    owner: null as string | null,
  }
}

/** Notes what happened to a list. */
export function noteEvent(
  list: Progress,
  event: JobEvent | VerifyEvent,
  now: number,
  rules: Config['rateLimit'],
): void {
  switch (event.kind) {
    case 'busy':
      list.owner = ownerName(event.owner, event.work)
      return
    case 'start':
      list.owner = null
      list.rows = event.walk.rowsSeen
      return
    case 'request':
      list.begunAt ??= now
      list.requests++
      if (list.wait) list.waitedMs += Math.max(now - list.wait.since, 0)
      list.wait = null
      return
    case 'retry':
      list.wait = { reason: event.reason, since: now, until: now + event.delayMs }
      return
    case 'wait':
      list.wait = { reason: event.reason, since: list.wait?.since ?? now, until: event.until }
      return
    case 'page': {
      const { page } = event
      list.pages++
      list.page = page.number
      list.lastPage = page.lastPage
      list.rows = event.itemsInWalk
      list.perMinute = allowedPerMinute(page.announcedLimit, rules)
      return
    }
    case 'finish':
    case 'notices':
    case 'pass':
    case 'refresh':
    case 'throttled':
    case 'verified':
    case 'waited':
  }
}

function pagesLeft({ pages, page, lastPage }: Progress): number | null {
  return pages === 0 || lastPage === null ? null : Math.max(lastPage - page, 0)
}

/** Milliseconds until the list is read; null: not known yet. `all`: the lists that are being read. */
export function leftOf(list: Progress, all: readonly Progress[], now: number): number | null {
  const paceOf = (one: Progress): Pace => ({
    budget: one.budget,
    pages: one.pages,
    runMs: now - (one.begunAt ?? now),
    waitedMs: one.waitedMs,
    waitMs: Math.max((one.wait?.until ?? now) - now, 0),
    pagesLeft: pagesLeft(one),
    perMinute: one.perMinute,
  })
  const others = all.filter((other) => other !== list && other.owner === null)
  return timeLeft(paceOf(list), others.map(paceOf))
}

/** `79 pages, about 3 minutes`; null: not known yet, or nothing is left. */
export function estimateText(list: Progress, all: readonly Progress[], now: number): string | null {
  const [pages, ms] = [pagesLeft(list), leftOf(list, all, now)]
  return pages === null || pages === 0 || ms === null
    ? null
    : `${counted(pages, 'more page')}, about ${inWords(ms)}`
}

/** More lines fit on no screen. */
const MOST_LINES = 50

/** A line for each list that is being read, those that move first. */
export function progressLines(lists: readonly Progress[], now: number): string[] {
  const shown = lists.toSorted((a, b) => Number(b.pages > 0) - Number(a.pages > 0)).slice(0, MOST_LINES)
  const widest = Math.max(...shown.map(({ label }) => label.length))
  return shown.map((list) => `${list.label.padEnd(widest)}  ${stateText(list, lists, now)}`)
}

/** `page 12 of 40, 300 rows, about 2 minutes left`, or what the list waits for. */
function stateText(list: Progress, all: readonly Progress[], now: number): string {
  const { owner, pages, page, lastPage, rows, wait } = list
  if (owner !== null) return `waits for ${printable(owner, 60)}`
  const left = leftOf(list, all, now)
  const of = lastPage === null || lastPage < page ? '' : ` of ${grouped(lastPage)}`
  const parts = [
    ...(pages === 0 ? [] : [`page ${grouped(page)}${of}`, counted(rows, 'row')]),
    ...(left === null ? [] : [`about ${inWords(left)} left`]),
    ...(wait && wait.until > now
      ? [`waits ${inWords(wait.until - now)}: ${printable(wait.reason, 100)}`]
      : []),
  ]
  return parts.length === 0 ? 'waits for its first page' : parts.join(', ')
}
