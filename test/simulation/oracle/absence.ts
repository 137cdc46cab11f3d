import { isListed, type ListFilters, type ListPage } from '../list.ts'
import type { SimulatedProcess } from '../process.ts'
import type { PageInHand, WalkRow } from './ledger.ts'
import type { Gone } from './versions.ts'

/** What a walk saw, and when: times count what was written in this job. */
export interface Seen {
  keys: Set<number>
  /** Those on the pages of refreshes while it was open: it has not missed them. */
  refreshed: Set<number>
  start: number
  end: number
  /** Answers in all its passes: what comes in one answer cannot have moved meanwhile. */
  answers: number
  /** The pass that it is in, and the items on the pages of that one. */
  pass: number
  listed: number
  filters: ListFilters
  /** Those that worked on it since its last page: what one of them has begun to remove the next one goes on with. */
  workers: Set<SimulatedProcess>
  /** Whether the list's end was read, and whether the walk is complete. */
  isRead: boolean
  isOver: boolean
}

export interface JobKnowledge {
  time: number
  lastSeen: Map<number, number>
  /** The filters of every page that was written, and those that were configured when it was. */
  scopes: Set<string>
  walks: Map<number, Seen>
  /** The last trusted one. */
  trusted: Seen | null
  held: Set<number>
  /** Those that a trusted walk did not see though its filters let them pass, and none since. */
  missed: Set<number>
  /** Gone since the last walk was complete. */
  gone: Gone[]
  atWork: { walk: number; process: SimulatedProcess } | null
  /** A process died while it may have been removing or holding back: what exactly it did is known with the next walk. */
  isVague: boolean
}

interface Brake {
  brakePercent: number
  brakeRows: number
}

/** Nothing is known of the job yet. */
export function newJob(): JobKnowledge {
  return {
    time: 0,
    lastSeen: new Map(),
    scopes: new Set(),
    walks: new Map(),
    trusted: null,
    held: new Set(),
    missed: new Set(),
    gone: [],
    atWork: null,
    isVague: false,
  }
}

/** Takes note of a page that was written. */
export function notePage(known: JobKnowledge, { request, page }: PageInHand, { id, passes }: WalkRow): void {
  known.time++
  const seen = seenBy(known, id)
  if (seen.answers === 0) seen.start = known.time - 1
  seen.filters = request.filters
  seen.end = known.time
  seen.answers++
  seen.listed = (seen.pass === passes ? seen.listed : 0) + page.items.length
  seen.pass = passes
  seen.isRead ||= page.next === null
  seen.workers = new Set([request.process])
  known.scopes.add(JSON.stringify(request.filters))
  for (const item of page.items) seen.keys.add(item.id)
  noteSeen(known, page)
}

/** Takes note of a page that a refresh has written: for removals it is as good as a walk's. */
export function noteRefreshed(known: JobKnowledge, { request, page }: PageInHand): void {
  known.time++
  known.scopes.add(JSON.stringify(request.filters))
  for (const walk of known.walks.values())
    if (!walk.isOver) for (const { id } of page.items) walk.refreshed.add(id)
  noteSeen(known, page)
}

function noteSeen(known: JobKnowledge, { items }: ListPage): void {
  for (const { id } of items) {
    known.lastSeen.set(id, known.time)
    known.held.delete(id)
    known.missed.delete(id)
  }
}

/** Of other walks, what they write after its first page is not missed by it; of refreshes, what they write after its beginning. */
export function seenBy({ walks, time }: JobKnowledge, id: number): Seen {
  const known = walks.get(id)
  if (known) return known
  const nothing = { pass: 1, answers: 0, listed: 0, isRead: false, isOver: false }
  const seen = {
    ...nothing,
    keys: new Set<number>(),
    refreshed: new Set<number>(),
    start: time,
    end: time,
    filters: {},
    workers: new Set<SimulatedProcess>(),
  }
  walks.set(id, seen)
  return seen
}

/** Whether what is due stays for now, unless somebody accepts that it goes. */
export function holdsBack(
  { held }: JobKnowledge,
  { keys, listed }: Seen,
  due: readonly number[],
  all: readonly number[],
  { brakePercent, brakeRows }: Brake,
): boolean {
  if (due.length === 0) return false
  const isBeyond = due.length > brakeRows && due.length * 100 > all.length * brakePercent
  return held.size > 0 || keys.size === 0 || listed === 0 || isBeyond
}

/** Whether a walk that has been read to its end may take an item away, as far as can be told before it is complete. */
export function mayGo(known: JobKnowledge, walk: Seen, id: number): boolean {
  const { trusted } = known
  if (walk.keys.has(id) || walk.refreshed.has(id) || !walk.isRead) return false
  const last = known.lastSeen.get(id) ?? 0
  return (
    (walk.answers === 1 && last < walk.end) ||
    (!!trusted && !trusted.keys.has(id) && !trusted.refreshed.has(id) && last <= trusted.end)
  )
}

/** Whether it has to, once it is trusted. */
export function mustGo(known: JobKnowledge, walk: Seen, id: number): boolean {
  const { trusted } = known
  if (walk.keys.has(id) || walk.refreshed.has(id)) return false
  const last = known.lastSeen.get(id) ?? 0
  if (walk.answers === 1 && last <= walk.start) return true
  if (!trusted || trusted.keys.has(id) || trusted.refreshed.has(id)) return false
  return last <= Math.min(trusted.start, walk.start)
}

/** Whether that is why it goes. Where the filters have changed both may be true. */
export function isReason(
  { scopes, missed }: JobKnowledge,
  { filters }: Seen,
  id: number,
  reason: string,
): boolean {
  if (!isListed({ id }, filters)) return reason === 'out_of_scope' || missed.has(id)
  return reason === 'removed' || scopes.size > 1
}
