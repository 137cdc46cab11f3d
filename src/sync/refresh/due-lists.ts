import { isAlarmed } from './alarm.ts'
import { expectedRequests, newestDueAt, newestInterval, owedAt, owedSince } from './due.ts'
import { LATE_MS, mayBegin, priceOf } from './price.ts'
import type { RefreshPolicy } from './refresher.ts'
import type { RefreshState } from './state.ts'

/** What is read of a list: its newest end and what else is due, older pages alone, or all of it. */
export type Reads = 'newest' | 'older' | 'walk'

/** A list that this process keeps fresh. */
export interface KnownList<L> {
  list: L
  policy: RefreshPolicy
  state: RefreshState
  /** When this process tried it last: a try that ends before its first request leaves no trace. Epoch milliseconds; absent: never. */
  tried: Partial<Record<Reads, number>>
  /** Whether this process reads it now: it refreshes itself then. */
  isRead: boolean
}

/** So long older pages wait that were just tried, and a walk at once. Milliseconds. */
const AFTER_OLDER_MS = 60_000
const AFTER_WALK_MS = 600_000

/**
 * Which lists of one budget have something to read now, as far as the share has room: newest ends first, that one first which has waited
 * longest for its time; then the older pages of the list that has waited longest for them. Whoever reads a list charges it.
 */
export function dueLists<L>(lists: readonly KnownList<L>[], now: number): { list: L; reads: Reads }[] {
  const share = lists[0]?.policy.share
  if (!share) return []
  const rules = share.rules()
  let known = share.known()
  const price = priceOf(known)
  const waits = lists.map((one) => {
    const { state, policy, tried } = one
    const interval = newestInterval(state, policy, price)
    const dueAt = Math.max(newestDueAt(state, policy, price, now), lastTry(tried.newest, now) + interval)
    return { ...one, waited: now - dueAt, times: (now - dueAt) / interval }
  })
  const free = waits.filter(({ isRead }) => !isRead)
  const owedOf = ({ state, policy }: (typeof free)[number]) =>
    owedSince(state, policy) ?? owedAt(state, policy, price, rules.chunk)
  const older = free
    .toSorted((a, b) => bandsAtOf(a) - bandsAtOf(b))
    .find((one) => lastTry(one.tried.older, now) + AFTER_OLDER_MS <= now && owedOf(one) <= now)
  share.noteWaits({
    isLate: Math.max(older ? now - owedOf(older) : 0, ...waits.map(({ waited }) => waited)) > LATE_MS,
    longest: Math.max(...waits.map(({ times }) => times)),
  })
  // It is no refresh: whatever the share has room for.
  const due: { list: L; reads: Reads }[] = free
    .filter(({ state, policy }) => policy.alarm && isAlarmed(state))
    .filter(({ tried }) => lastTry(tried.walk, now) + AFTER_WALK_MS <= now)
    .map(({ list }) => ({ list, reads: 'walk' }))
  for (const { list, state, policy, times } of free.toSorted((a, b) => b.times - a.times)) {
    if (times < 0 || !mayBegin(known, rules, 'newest', share.partOfLongest(times))) break
    due.push({ list, reads: 'newest' })
    known = { ...known, level: known.level + expectedRequests(state, policy.newest, now) }
  }
  return older && mayBegin(known, rules, 'visit') ? [...due, { list: older.list, reads: 'older' }] : due
}

function bandsAtOf({ state }: { state: RefreshState }): number {
  return state.rates?.bandsAt ?? state.startedAt
}

/** Once the clock was set back, nobody knows how long ago that was. */
function lastTry(triedAt: number | undefined, now: number): number {
  return triedAt === undefined || triedAt > now ? Number.NEGATIVE_INFINITY : triedAt
}
