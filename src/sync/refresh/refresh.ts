import { beginReading, type EndReading, type ReadingOutcome, type RefreshAnswer } from './end-reading.ts'
import { type End, endsToRead, hidden, learnPlaces, newestEnd, type RefreshRules, youngEnds } from './ends.ts'
import { readInward } from './read-inward.ts'
import type { RefreshState } from './state.ts'

/** A refresh under way, without its older pages. Kept in memory: an interrupted one begins again. */
export interface Refresh {
  /** Epoch milliseconds. */
  startedAt: number
  /** The reading under way: its `ask` is the next page. Null when all ends are read, and the refresh can be finished. */
  reading: EndReading | null
  /** Ends that are read after this one. */
  waiting: readonly End[]
  done: readonly EndReading[]
}

/** A refresh of a list that moved too much is repeated by the next one, which has more to read: after this many in a row that is left to a walk. */
const MOST_DOUBTS = 3

/** Begins a refresh. If new items appear at neither end, it reads nothing, but from time to time both ends. */
export function beginRefresh(state: RefreshState, { newest }: RefreshRules, now: number): Refresh {
  const waiting = endsToRead(state, newest, now)
  return readNext({ startedAt: now, reading: null, waiting, done: [] }, state)
}

/** What an answer means for the refresh, and which page to ask next. */
export function advanceRefresh(
  state: RefreshState,
  rules: RefreshRules,
  refresh: Refresh,
  answer: RefreshAnswer,
): Refresh {
  if (!refresh.reading) return refresh
  const { settledAt } = state
  const reading = readInward(refresh.reading, { settledAt, total: rules.total }, answer)
  if (reading.outcome === null) return { ...refresh, reading }
  const done = [...refresh.done, reading]
  const waiting = refresh.waiting.length > 0 ? refresh.waiting : otherEnd(state, rules, done, answer.found)
  return readNext({ ...refresh, reading: null, waiting, done }, state)
}

function readNext(refresh: Refresh, { lastPage }: RefreshState): Refresh {
  const [end, ...waiting] = refresh.waiting
  if (!end) return refresh
  const known = refresh.done.at(-1)?.lastPage ?? lastPage
  return { ...refresh, waiting, reading: beginReading(end, known) }
}

/** The end that was not read, if the total says that more is new than was found. */
function otherEnd(
  state: RefreshState,
  { newest }: RefreshRules,
  done: readonly EndReading[],
  found: number,
): readonly End[] {
  const [only, other] = done
  if (newest !== 'auto' || !only || other) return []
  if (hidden({ rise: riseOf(state, done), all: found + rejectsOf(done) }) === 0) return []
  return [only.end === 'first' ? 'last' : 'first']
}

/**
 * The state after a refresh, to be saved once its ends are read.
 * @param at The time of its last page, epoch milliseconds.
 * @param found `found` of the last answer.
 */
export function finishRefresh(
  state: RefreshState,
  rules: RefreshRules,
  refresh: Refresh,
  at: number,
  found: number,
): RefreshState {
  const { startedAt, done } = refresh
  const [firstRead] = done
  if (!firstRead) return { ...state, startedAt }
  const bothEndsAt = done.length > 1 ? startedAt : state.bothEndsAt
  const lastPage = done.at(-1)?.lastPage ?? state.lastPage
  const read = { ...state, startedAt, bothEndsAt, lastPage }
  const places = learnFrom(state, done, found)
  const outcome = judge(done, youngEnds(places, rules.newest))
  if (outcome === 'unsettled') return { ...read, lastPage: lastPageShown(state, done) }
  const doubts = state.doubts ?? 0
  if (outcome === 'doubtful' && doubts < MOST_DOUBTS) return { ...read, doubts: doubts + 1 }
  const rowsAdded = state.rowsAdded + found
  const outwards = done.flatMap(({ outwardsAt }) => outwardsAt ?? [])
  const settledAt = Math.min(at, ...outwards)
  // The total must be of the time of `settledAt`: a reading that stepped back outwards has found rows that came meanwhile, too.
  const total = outwards.length > 0 ? firstRead.total : firstRead.topTotal
  const settled = { ...read, settledAt, places, older: 0, total, rowsAdded, doubts: 0 }
  // No later refresh reads what a hole left unread, or what slid past: only a walk does.
  if (outcome === 'hole') return { ...settled, holeSince: startedAt, holes: state.holes + 1 }
  if (outcome === 'unproven' || outcome === 'doubtful') return { ...settled, holeSince: startedAt, holes: 0 }
  const freshAsOf =
    state.holeSince === null && isNewestRead(places, rules.newest)
      ? Math.max(startedAt, state.freshAsOf)
      : state.freshAsOf
  return { ...settled, holes: 0, freshAsOf }
}

/** Pages that the refresh read from this end inwards, however often. */
export function pagesRead({ done }: Refresh, end: End | null): number {
  const { top = null, answerOf = new Map<number, number>() } = done.find((one) => one.end === end) ?? {}
  return top === null ? 0 : [...answerOf.values()].filter((answer) => answer >= top).length
}

/** An answer that lacked items by mistake must not shorten a long list: a short one would be walked instead of refreshed. */
function lastPageShown(state: RefreshState, done: readonly EndReading[]): number {
  const named = done.at(-1)?.lastPage ?? state.lastPage
  return done.some(({ news }) => news.items > 0) ? Math.max(named, state.lastPage) : named
}

/** Whether the newest end was read. While none is known both are read, and one of them is the newest as long as nothing is new elsewhere. */
function isNewestRead(places: RefreshState['places'], newest: RefreshRules['newest']): boolean {
  const areBothRead = places.elsewhere === 0 && youngEnds(places, newest).length > 1
  return areBothRead || newestEnd(places, newest) !== null
}

/** The outcome of the young ends; that of an end which is only read now and then does not count beside theirs. */
function judge(done: readonly EndReading[], young: readonly End[]): ReadingOutcome {
  const read = done.filter(({ end }) => young.includes(end))
  const outcomes = (read.length > 0 ? read : done).map(({ outcome }) => outcome)
  return (
    (['unsettled', 'hole', 'unproven', 'doubtful'] as const).find((outcome) => outcomes.includes(outcome)) ??
    'settled'
  )
}

function learnFrom(state: RefreshState, done: readonly EndReading[], found: number): RefreshState['places'] {
  const at = (end: End) => done.find((reading) => reading.end === end)?.news.added ?? 0
  const rise = riseOf(state, done)
  const all = found + rejectsOf(done)
  return learnPlaces(state.places, { first: at('first'), last: at('last'), older: state.older, rise, all })
}

/** New items without a usable key: they are no rows, but the total counts them. */
function rejectsOf(done: readonly EndReading[]): number {
  return done.reduce((sum, { rejected }) => sum + rejected, 0)
}

function riseOf({ total }: RefreshState, [firstRead]: readonly EndReading[]): number | null {
  const now = firstRead?.topTotal ?? null
  return total === null || now === null ? null : now - total
}
