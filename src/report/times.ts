import { isAhead } from '../clock.ts'
import type { StatusRow } from '../store/core/status.ts'

// Whether a list should have been read by now, and how long a walk still takes.

/** A run may start this late: it may wait 30 seconds for the file's lock. */
const GRACE_MS = 30_000

/** All attempts at a page together take less, unless the server asks for a pause: then `waiting_until` is set. */
const STALLED_MS = 3_600_000

/**
 * The moment from which the next time of the schedule counts (epoch milliseconds): the end of the last run by schedule or
 * by hand, since a tick during a run is skipped, or `as_of` if that is later; null if there was neither. A killed run does not
 * count: a process in a crash loop would never be overdue.
 */
export function lastAttempt(
  row: Pick<StatusRow, 'as_of' | 'last_sync_finished_at'>,
  now: number,
): number | null {
  const times = [row.as_of, row.last_sync_finished_at].flatMap((time) =>
    time === null || isAhead(time, now) ? [] : [Date.parse(time)],
  )
  return times.length === 0 ? null : Math.max(...times)
}

/**
 * Whether a list should have been read by now. One that was never read is overdue until a process begins.
 * @param dueAt The first time of its schedule since `lastAttempt`; null if none has come.
 */
export function isOverdue(row: StatusRow, dueAt: number | null, now: number): boolean {
  if (row.configured !== 1) return false
  const isNeverTried = lastAttempt(row, now) === null
  if (!isNeverTried && (dueAt === null || now - dueAt < GRACE_MS)) return false
  return row.running === false || isStalled(row, now)
}

/** No page written for an hour, by one run or by several that were killed, and no recorded wait explains it. */
function isStalled(row: StatusRow, now: number): boolean {
  if (row.waiting_until !== null) return false
  const signs = [row.walk_updated_at, row.tried_since ?? row.last_run_at].flatMap((time) =>
    time ? [Date.parse(time)] : [],
  )
  return signs.length > 0 && now - Math.max(...signs) > STALLED_MS
}

/** A walk that is being read. */
export interface Pace {
  /** Lists with the same budget share a rate limit. */
  budget: string
  /** Answers that this run has read so far, and how long ago it began (milliseconds). */
  pages: number
  runMs: number
  /** How much of that time it waited for its rate limit. */
  waitedMs: number
  /** How long a wait still lasts; 0: none does. */
  waitMs: number
  /** Pages that it has still to read; null: unknown. */
  pagesLeft: number | null
  /** Requests a minute that its rate limit lets us send; null: no limit is known. */
  perMinute: number | null
}

/** Fewer answers do not show how fast a server is: the beginning of a run is part of the first. */
const ENOUGH_PAGES = 3

const MINUTE_MS = 60_000

/**
 * Milliseconds until a walk has read its list, everywhere where people are told: its requests, and those that the other lists send meanwhile,
 * by what the limit allows (what the first minute still allows leaves at once, the others at the pace of the limit), or by the
 * server's speed where that takes longer. Null before one of the two is known, and when all pages are read.
 * @param all What is being read now.
 */
export function timeLeft(pace: Pace, all: readonly Pace[]): number | null {
  const { budget, pages, runMs, waitedMs, waitMs, pagesLeft, perMinute } = pace
  if (pagesLeft === null || pagesLeft === 0) return null
  const isPaced = pages >= ENOUGH_PAGES
  if (perMinute === null && !isPaced) return null
  const others = all.filter((other) => other !== pace && other.budget === budget)
  // How long the others are, their first answers say.
  if (others.some((one) => one.pages === 0)) return null
  // The lists of a limit take turns, so a longer one sends no more than this one meanwhile. One that does not say its length is taken for as long.
  const requests = others.reduce(
    (sum, one) => sum + Math.min(one.pagesLeft ?? pagesLeft, pagesLeft),
    pagesLeft,
  )
  const sent = others.reduce((sum, one) => sum + one.pages, pages)
  const bySpeed = isPaced ? (Math.max(runMs - waitedMs, 0) / pages) * pagesLeft : 0
  const byLimit = perMinute === null ? 0 : msToSend(requests, perMinute, sent, runMs)
  const ms = Math.round(Math.max(bySpeed, byLimit, waitMs))
  // Where the limit holds nothing back, only the server's speed says how long it takes.
  return ms === 0 && !isPaced ? null : ms
}

/** `sent`: how many have left since the first, `ms` ago. */
function msToSend(requests: number, perMinute: number, sent: number, ms: number): number {
  if (ms >= MINUTE_MS) return (requests / perMinute) * MINUTE_MS
  const open = Math.max(Math.floor(perMinute) - sent, 0)
  if (requests <= open) return 0
  const later = requests - open
  return MINUTE_MS - ms + (later / perMinute - Math.min(later, perMinute) / perMinute) * MINUTE_MS
}
