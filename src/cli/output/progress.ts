import { type Pace, timeLeft } from '../../report/times.ts'
import { counted, grouped, inWords, printable } from '../../text.ts'

/** How far a list is. Times are epoch milliseconds. */
export interface Progress {
  label: string
  /** Lists with the same budget share a rate limit. */
  budget: string
  /** When its first request left; null: none has. */
  begunAt: number | null
  /** Answers of this run, the page read last, and the last of the list, if that is known. */
  pages: number
  page: number
  lastPage: number | null
  rows: number
  /** How long it waited for its rate limit. */
  waitedMs: number
  /** What it waits for, and until when. */
  wait: { reason: string; until: number } | null
  /** Requests a minute that its rate limit lets us send; null: no limit is known. */
  perMinute: number | null
  /** Which other process has it; null: none. */
  owner: string | null
}

/** More lines fit on no screen. */
const MOST_LINES = 50

/** A line for each list that is being read, those that move first. */
export function progressLines(lists: readonly Progress[], now: number): string[] {
  const shown = lists.toSorted((a, b) => Number(b.pages > 0) - Number(a.pages > 0)).slice(0, MOST_LINES)
  const widest = Math.max(...shown.map(({ label }) => label.length))
  const paces = new Map(lists.filter(({ owner }) => owner === null).map((one) => [one, paceOf(one, now)]))
  return shown.map((list) => {
    const pace = paces.get(list)
    const left = pace === undefined ? null : timeLeft(pace, [...paces.values()])
    return `${list.label.padEnd(widest)}  ${stateText(list, left, now)}`
  })
}

function paceOf(list: Progress, now: number): Pace {
  const { budget, pages, page, lastPage, waitedMs, perMinute } = list
  return {
    budget,
    pages,
    runMs: now - (list.begunAt ?? now),
    waitedMs,
    waitMs: Math.max((list.wait?.until ?? now) - now, 0),
    pagesLeft: pages === 0 || lastPage === null ? null : Math.max(lastPage - page, 0),
    perMinute,
  }
}

/** `page 12 of 40, 300 rows, about 2 minutes left`, or what the list waits for. */
function stateText(list: Progress, left: number | null, now: number): string {
  const { owner, pages, page, lastPage, rows, wait } = list
  if (owner !== null) return `waits for ${printable(owner, 60)}`
  const of = lastPage === null || lastPage < page ? '' : ` of ${grouped(lastPage)}`
  const waits = wait !== null && wait.until > now
  const parts = [
    pages > 0 && `page ${grouped(page)}${of}, ${counted(rows, 'row')}`,
    left !== null && `about ${inWords(left)} left`,
    waits && `waits ${inWords(wait.until - now)}: ${printable(wait.reason, 100)}`,
  ]
  return parts.filter((part) => part !== false).join(', ') || 'waits for its first page'
}
