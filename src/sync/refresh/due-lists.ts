import { expectedRequests, newestDueAt, newestInterval, owedAt, owedSince } from './due.ts'
import { LATE_MS, mayBegin, priceOf, waitFor } from './price.ts'
import type { RefreshPolicy } from './refresher.ts'
import type { ShareUse } from './share-use.ts'
import type { RefreshState } from './state.ts'

/** What is read of a list: its newest end and what else is due, or older pages alone. */
export type Reads = 'newest' | 'older'

/** When this process tried a list last: a try that ends before its first request leaves no trace. Epoch milliseconds; absent: never. */
export type Tried = Partial<Record<Reads, number>>

/** A list that nobody in this process reads. */
export interface KnownList<L> {
  list: L
  policy: RefreshPolicy
  state: RefreshState
  tried: Tried
}

export interface DueList<L> {
  list: L
  reads: Reads
}

/** So long older pages wait that were just tried. Milliseconds. */
const AFTER_OLDER_MS = 60_000

/**
 * Which lists of one budget have something to read now, as far as the share has room: newest ends first, that one first which has waited
 * longest for its time; then the older pages of the list that has waited longest for them. Whoever reads a list charges it.
 * `again`: when to look again, epoch milliseconds.
 */
export function dueLists<L>(
  lists: readonly KnownList<L>[],
  share: ShareUse,
  now: number,
): { due: DueList<L>[]; again: number } {
  const [any] = lists
  if (!any) return { due: [], again: Number.POSITIVE_INFINITY }
  const rules = any.policy.rules()
  let known = share.known(rules)
  const price = priceOf(known)
  const newest = lists
    .map((one) => ({ ...one, ...newestOf(one, price, now) }))
    .toSorted((a, b) => b.waited - a.waited)
  const due: DueList<L>[] = []
  let again = Number.POSITIVE_INFINITY
  let isLate = false
  for (const { list, state, policy, dueAt } of newest) {
    if (dueAt > now) again = Math.min(again, dueAt)
    else {
      isLate ||= now - dueAt > LATE_MS
      if (mayBegin(known, rules, 'newest')) {
        due.push({ list, reads: 'newest' })
        known = { ...known, level: known.level + expectedRequests(state, policy.newest, now) }
      } else again = Math.min(again, now + waitFor(known, rules, 'newest'))
    }
  }
  const owing = lists.map((one) => ({ ...one, since: owedSince(one.state, one.policy) }))
  isLate ||= owing.some(({ since }) => since !== null && now - since > LATE_MS)
  share.noteLate(isLate)
  if (!mayBegin(known, rules, 'visit'))
    return { due, again: Math.min(again, now + waitFor(known, rules, 'visit')) }
  const byAge = owing.toSorted((a, b) => bandsAtOf(a) - bandsAtOf(b))
  for (const { list, state, policy, since, tried } of byAge) {
    const owed = since ?? owedAt(state, policy, price, rules.chunk)
    const dueAt = Math.max(owed, lastTry(tried.older, now) + AFTER_OLDER_MS)
    if (dueAt <= now) return { due: [...due, { list, reads: 'older' }], again }
    again = Math.min(again, dueAt)
  }
  return { due, again }
}

/** Once the clock was set back, nobody knows how long ago that was. */
function lastTry(triedAt: number | undefined, now: number): number {
  return triedAt === undefined || triedAt > now ? Number.NEGATIVE_INFINITY : triedAt
}

function newestOf<L>({ state, policy, tried }: KnownList<L>, price: number, now: number) {
  const interval = newestInterval(state, policy, price)
  const dueAt = Math.max(newestDueAt(state, policy, price, now), lastTry(tried.newest, now) + interval)
  return { dueAt, waited: (now - dueAt) / interval }
}

function bandsAtOf({ state }: { state: RefreshState }): number {
  return state.rates?.bandsAt ?? state.startedAt
}
