import type { JobError } from '../../errors.ts'
import {
  beginReading,
  type EndReading,
  type ReadingOutcome,
  type RefreshAnswer,
  type RefreshRow,
} from './end-reading.ts'
import {
  type End,
  endsToRead,
  endsWorthReading,
  hidden,
  learnPlaces,
  newestEnd,
  type RefreshRules,
} from './ends.ts'
import { afterNewestEnd } from './rates.ts'
import { readInward, seekFromFirst } from './read-inward.ts'
import { knownRates, type RefreshState } from './state.ts'

/** A refresh that could not follow its list settles nothing, so the next one has more to read. After this many in a row, that is left to a walk. */
const MOST_DOUBTS = 3

/** An answer as it is once it is written. */
export interface WrittenAnswer<Id> extends Omit<RefreshAnswer, 'page' | 'rows'> {
  items: readonly ({ id: Id } & Omit<RefreshRow, 'metIn'>)[]
  /** Rows that it added and changed. */
  written: { added: number; changed: number }
}

/** The page to ask for next; it is answered with what was written, or with the error that the API gave instead. */
type Reading<Id, R> = Generator<number, R, WrittenAnswer<Id> | JobError>

/**
 * Reads the ends of a list, without its older pages. If new items appear at neither end, it reads nothing, except both ends from time to time.
 * An interrupted reading begins again.
 * @returns The state to be saved then, and how each end was read.
 */
export function* readEnds<Id>(
  state: RefreshState,
  rules: RefreshRules,
  startedAt: number,
): Reading<Id, { state: RefreshState; done: readonly EndReading[] }> {
  const done: EndReading[] = []
  let waiting = endsToRead(state, rules.newest, startedAt)
  let last = { at: startedAt, found: 0 }
  const written = { added: 0, changed: 0 }
  for (;;) {
    const [end, ...others] = waiting
    if (!end) break
    const begun = beginReading(end, done.at(-1)?.lastPage ?? state.lastPage)
    const reading = yield* readEnd<Id>(begun, state, rules, (answer) => {
      last = answer
      written.added += answer.written.added
      written.changed += answer.written.changed
    })
    done.push(reading)
    waiting = others.length > 0 ? others : otherEnd(state, rules, done, last.found)
  }
  const after = finish(state, rules, { startedAt, done }, last)
  const rates = knownRates(after, rules.newest, last.at)
  return {
    state: {
      ...after,
      newestRead: pagesRead(done, newestEnd(after.places, rules.newest)),
      rates: afterNewestEnd(rates, written, startedAt - state.startedAt),
    },
    done,
  }
}

function* readEnd<Id>(
  begun: EndReading,
  { settledAt }: RefreshState,
  { total }: RefreshRules,
  note: (answer: WrittenAnswer<Id>) => void,
): Reading<Id, EndReading> {
  /** The number of the last answer that held each item. */
  const met = new Map<Id, number>()
  let reading = begun
  while (reading.outcome === null) {
    const { ask } = reading
    if (ask === null) throw new Error('a reading without a page to ask has not ended')
    const answer = yield ask
    if (answer instanceof Error) {
      const sought = seekFromFirst(reading, answer)
      if (!sought) throw answer
      reading = sought
      continue
    }
    note(answer)
    const { items, written: _, ...shown } = answer
    const rows = items.map(({ id, ...row }) => ({ ...row, metIn: met.get(id) ?? null }))
    for (const { id } of items) met.set(id, reading.answers + 1)
    reading = readInward(reading, { settledAt, total }, { ...shown, page: ask, rows })
  }
  return reading
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

/** The state once all ends are read. `last`: the last answer; or the start, if nothing was asked. */
function finish(
  state: RefreshState,
  rules: RefreshRules,
  { startedAt, done }: { startedAt: number; done: readonly EndReading[] },
  { at, found }: { at: number; found: number },
): RefreshState {
  const [firstRead] = done
  if (!firstRead) return { ...state, startedAt }
  const bothEndsAt = done.length > 1 ? startedAt : state.bothEndsAt
  const lastPage = done.at(-1)?.lastPage ?? state.lastPage
  const read = { ...state, startedAt, bothEndsAt, lastPage }
  const places = learnFrom(state, done, found)
  const outcome = outcomeOf(done, endsWorthReading(places, rules.newest))
  if (outcome === 'unsettled') return { ...read, lastPage: lastPageShown(state, done) }
  const doubts = state.doubts ?? 0
  if (outcome === 'doubtful' && doubts < MOST_DOUBTS) return { ...read, doubts: doubts + 1 }
  const rowsAdded = state.rowsAdded + found
  const outwards = done.flatMap(({ outwardsAt }) => outwardsAt ?? [])
  const settledAt = Math.min(at, ...outwards)
  // The total must be of the time of `settledAt`: a reading that stepped outward has found rows that came meanwhile, too.
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
function pagesRead(done: readonly EndReading[], end: End | null): number {
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
  const areBothRead = places.elsewhere === 0 && endsWorthReading(places, newest).length > 1
  return areBothRead || newestEnd(places, newest) !== null
}

/** The outcome of the ends worth reading; that of an end which is only read now and then does not count beside theirs. */
function outcomeOf(done: readonly EndReading[], worthReading: readonly End[]): ReadingOutcome {
  const read = done.filter(({ end }) => worthReading.includes(end))
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
