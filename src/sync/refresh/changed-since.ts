import { type ErrorCode, KnownError } from '../../errors.ts'
import type { Upsert } from '../store.ts'
import { type Moment, momentIn, readMoment } from './moment.ts'
import { MINUTE_MS, PER_PAGE } from './price.ts'

/** A parameter of the API that returns only the items that have changed since a time, and the field that holds when an item changed. */
export interface ChangedSinceRules {
  parameter: string
  /** Dotted path. */
  field: string
}

/** A page of what changed since a time, to be asked for. */
export interface ChangesQuestion {
  /** As the API writes it. */
  since: string
  page: number
  /** The total of the answer before. */
  total: number | null
  /** The largest value of the pages before it; null: they are not sorted from the oldest changes on. */
  above: number | null
}

/** What is known of such an API between refreshes. It claims nothing: full walks and older pages find what the API hides. */
export interface ChangedSince {
  /** The configured rules: what is known is about these alone. */
  rules: ChangedSinceRules
  /**
   * The largest value of the field up to the first answer of a reading, as the API writes it. Later answers do not raise it: the answers before
   * them may have missed changes that are older than their values. Null: it is learned at the newest end.
   */
  mark: string | null
  /** The largest value of all answers so far; it becomes the mark of the next reading. */
  seen?: string | null
  /** Changes after this time are found by asking for them. By the API's clock, like all times that are compared with its values. */
  from: number
  /** What its values are rounded to, milliseconds. */
  unit: number
  /** Milliseconds before the mark that are asked for again. */
  overlap: number
  /** The page to ask for; null: all is read for now. */
  ask: ChangesQuestion | null
  /** The last question that was read to its end: none of its pages is asked for again until something is added to it. */
  read: { since: string; total: number | null } | null
  /** When a page of the list showed a change that this should have found, by our clock; absent: never since the overlap was doubled. */
  lateAt?: number | undefined
  /** Whether the API gives the oldest changes first; absent: not known to. */
  isRising?: boolean
  /** Whether rows have changed without their field. */
  hasUntouched: boolean
  /** Useless answers in a row; a refusal counts as MOST_USELESS / 2 of them. */
  useless?: number
  /** Why the API is not asked; null: it is. Stays until a question was answered to its end. */
  off: string | null
  /** When it is tried again, by our clock; null: never. Absent while nothing has turned it off. */
  againAt?: number | null
}

/** A row that a page of the list itself changed. */
export interface ChangedRow {
  /** Its field. */
  at: Moment | null
  /** Whether the field is another than before. */
  isTouched: boolean
}

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

/** What APIs round times to. This many different values are enough to show it. */
const UNITS = [DAY_MS, HOUR_MS, MINUTE_MS]
const ENOUGH_VALUES = 3

const LEAST_OVERLAP = 120_000
const MOST_OVERLAP = HOUR_MS

/** After this many answers in a row that held nothing, or more than half of the list, the API is not asked for a day. Asked each five minutes, that is after an hour. */
const MOST_USELESS = 12

const NOTHING: Omit<ChangedSince, 'rules'> = {
  mark: null,
  from: 0,
  unit: 1,
  overlap: LEAST_OVERLAP,
  ask: null,
  read: null,
  hasUntouched: false,
  off: null,
}

/** The state without what is known of another parameter or field than the configured ones. */
export function keepChanges<S extends { changes?: ChangedSince }>(
  state: S | null,
  rules: ChangedSinceRules | null,
): S | null {
  const known = state?.changes?.rules
  if (!state || (known?.parameter === rules?.parameter && known?.field === rules?.field)) return state
  const { changes: _, ...others } = state
  return others as S
}

/**
 * Returns the state with the page to ask for, if there is one.
 * @param shown The fields of the rows at the newest end, which was just read. @param elapsed Milliseconds since the list was read before.
 */
export function beginChanges(
  before: ChangedSince | undefined,
  rules: ChangedSinceRules,
  shown: readonly (Moment | null)[],
  elapsed: number,
  now: number,
): ChangedSince {
  const known = before ?? { ...NOTHING, rules }
  if (known.ask || isOff(known, now)) return known
  const state = known.mark === null ? withMark(known, shown, elapsed, now) : known
  return state.mark === null ? state : { ...state, ask: firstPage(state) }
}

/** A clock that was set back delays no try by more than a day. */
function isOff({ off, againAt = null }: ChangedSince, now: number): boolean {
  if (off === null) return false
  return againAt === null || (now < againAt && againAt - now <= DAY_MS)
}

function withMark(
  state: ChangedSince,
  shown: readonly (Moment | null)[],
  elapsed: number,
  now: number,
): ChangedSince {
  const times = shown.filter((moment) => moment !== null)
  const largest = largestOf(times, now)
  if (largest) {
    const isShown = new Set(times.map(({ ms }) => ms)).size >= ENOUGH_VALUES
    const rounded = isShown && UNITS.find((one) => times.every(({ ms }) => ms % one === 0))
    const unit = Math.max(largest.unit, rounded || 0)
    const from = largest.ms - Math.max(0, elapsed)
    const overlap = Math.max(state.overlap, unit)
    return { ...state, mark: largest.write(from), from, unit, overlap, read: null }
  }
  // No row has such a time yet: rows may get one with their first change.
  return state
}

/** The largest time that may be the API's now. Rows may be dated ahead, and its clock may be hours ahead, too: too old a mark only asks for more, too young a one misses changes. */
function largestOf(times: readonly Moment[], now: number): Moment | null {
  const until = (end: number) => later(...times.filter(({ ms }) => ms <= end))
  return until(now + HOUR_MS) ?? until(now + DAY_MS)
}

function later(...moments: readonly (Moment | null)[]): Moment | null {
  return moments.reduce((most, one) => (one && one.ms > (most?.ms ?? -Infinity) ? one : most), null)
}

function textOf(moment: Moment | null): string | null {
  return moment?.write(moment.ms) ?? null
}

function firstPage({ mark, overlap }: ChangedSince): ChangesQuestion {
  const moment = readMoment(mark ?? undefined)
  const since = moment ? moment.write(moment.ms - overlap) : ''
  return { since, page: 1, total: null, above: 0 }
}

export interface ChangesAnswer {
  /** The fields of its rows, in order. */
  values: readonly (Moment | null)[]
  total: number | null
  next: number | null
}

/** What an answer says, and which page to ask for next. @param listTotal The total of the whole list. */
export function afterChanges(
  state: ChangedSince,
  { values, total, next }: ChangesAnswer,
  listTotal: number | null,
  now: number,
): ChangedSince {
  const { ask, unit, rules } = state
  const since = readMoment(ask?.since)
  if (!ask || !since) return { ...state, ask: null }
  const times = values.filter((moment) => moment !== null)
  // The API may compare times more coarsely than it shows them.
  if (times.some(({ ms }) => ms < since.ms - Math.max(unit, MINUTE_MS))) {
    const why = `the API gave rows whose ${rules.field} is older than ${rules.parameter}: it ignores the parameter, or goes by another field`
    return turnOff(state, why, now)
  }
  const isFirst = ask.page === 1
  const above = ask.above
  const isSorted = above !== null && times.every(({ ms }, index) => ms >= (times[index - 1]?.ms ?? above))
  const shown = largestOf(times, now)
  const before = readMoment(state.seen ?? undefined)
  const mark = readMoment(state.mark ?? undefined)
  const moved = later(mark, isFirst ? before : null, isFirst || isSorted ? shown : null)
  const rises = isSorted && (times[0]?.ms ?? 0) < (times.at(-1)?.ms ?? 0)
  // `isRising` becomes true at the second sorted page in a row: one page may be sorted by chance.
  const isRising = isSorted && (state.isRising || (rises && !isFirst))
  const after = { ...state, isRising, mark: textOf(moved), seen: textOf(later(before, shown)), ask: null }
  const rows = total ?? ask.page * PER_PAGE
  // Nearly everything has changed at once, which a walk reads as well; or the API ignores the parameter.
  if (listTotal !== null && rows > listTotal / 2 && rows > PER_PAGE)
    return afterUseless(forgetMark(after), 'gave more than half of the list', now)
  if (isFirst && values.length === 0)
    return afterUseless(after, 'gave nothing, though rows have changed', now)
  // Rows that left the pages before have drawn as many rows from later pages to them: step back as far.
  const fell = Math.max(0, (ask.total ?? 0) - (total ?? ask.total ?? 0))
  const isRead = state.read?.since === ask.since && state.read.total === total
  if ((next === null && fell === 0) || (isFirst && isRead))
    return { ...after, useless: 0, off: null, read: { since: ask.since, total } }
  // Sorted from the oldest change on: asking again from the new mark loses nothing, since what changes meanwhile moves behind it.
  if (isFirst && isRising && rises && moved !== mark) return { ...after, ask: firstPage(after) }
  const page = fell > 0 ? Math.max(1, ask.page - Math.ceil(fell / PER_PAGE)) : ask.page + 1
  return { ...after, ask: { ...ask, page, total, above: isSorted ? (times.at(-1)?.ms ?? above) : null } }
}

/** One useless answer proves little: the row that the mark came from may be gone. So after half of the tries the mark is learned again, and only after all of them is the API no longer asked. */
function afterUseless(state: ChangedSince, what: string, now: number): ChangedSince {
  const useless = (state.useless ?? 0) + 1
  if (useless >= MOST_USELESS)
    return turnOff({ ...state, useless }, `${useless} times in a row the API ${what}`, now)
  return { ...(useless === MOST_USELESS / 2 ? forgetMark(state) : state), useless }
}

/** Asks only once a day from now on, to see whether the API has recovered, for example after an hour in which nearly everything changed. */
function turnOff(state: ChangedSince, why: string, now: number): ChangedSince {
  return { ...forgetMark(state), ask: null, off: `${why}; it is tried again each day`, againAt: now + DAY_MS }
}

function forgetMark(state: ChangedSince): ChangedSince {
  return { ...state, mark: null, seen: null }
}

/** Errors of the question itself: the API has just answered the same request without the parameter. It may even fail because of it, or search for too long. */
const REFUSED: readonly ErrorCode[] = [
  'BAD_REQUEST',
  'FORBIDDEN',
  'ORGANIZATION_NOT_FOUND',
  'UNEXPECTED_STATUS',
  'BAD_RESPONSE',
  'LINK_REFUSED',
  'SERVER_ERROR',
  'TIMEOUT',
  'NETWORK',
  'RATE_LIMITED',
  // Holds the token, as any 401 does.
  'UNAUTHORIZED',
]

export function isRefusedQuestion(error: unknown): error is KnownError {
  return error instanceof KnownError && REFUSED.includes(error.code)
}

/** The state once the API refused a question. */
export function afterRefusal(before: ChangedSince, code: ErrorCode, now: number): ChangedSince {
  // A server that is being replaced may refuse once.
  const useless = (before.useless ?? 0) + MOST_USELESS / 2
  // Pages that were not read come again.
  const again = before.ask && before.ask.page > 1 ? { mark: before.ask.since, seen: null } : {}
  const state = { ...before, ...again, ask: null, useless }
  const why = `the API refuses requests with ${state.rules.parameter} (${code})`
  // Each such refusal holds the token, so it is never tried again.
  if (code === 'UNAUTHORIZED' && useless >= MOST_USELESS) return { ...state, off: why, againAt: null }
  return useless >= MOST_USELESS ? turnOff(state, why, now) : state
}

/** The rows that a page of the list itself changed. @param ignore Dotted paths that are not compared: nothing shows whether these changed. */
export function changedRows(
  upserts: readonly Upsert[],
  { field }: ChangedSinceRules,
  ignore: readonly string[],
): ChangedRow[] {
  if (ignore.some((path) => `${field}.`.startsWith(`${path}.`))) return []
  return upserts
    .filter(({ change }) => change === 'changed')
    .map(({ value, fields = [] }) => {
      const isTouched = fields.some((names) => `${field}.`.startsWith(`${names.join('.')}.`))
      return { at: momentIn(value, field), isTouched }
    })
}

/** The warnings about a change of the state, each once. */
export function changesWarnings(before: ChangedSince | undefined, after: ChangedSince): string[] {
  const { off, hasUntouched, rules } = after
  return [
    ...(off !== null && !before?.off
      ? [`changedSince is off: ${off}. Meanwhile older pages and full walks find what changed`]
      : []),
    ...(off === null && before?.off ? [`changedSince is on again: the API gives what changed`] : []),
    ...(hasUntouched && !before?.hasUntouched
      ? [`a row changed but its ${rules.field} did not: only older pages and full walks find such changes`]
      : []),
  ]
}

/** Compares with what pages of the list itself changed. Two late changes within a day double the overlap. */
export function verifyChanges(
  state: ChangedSince,
  changed: readonly ChangedRow[],
  now: number,
): ChangedSince {
  const mark = readMoment(state.mark ?? undefined)
  // Pages that are still to be read hold some of it.
  if (state.off !== null || !mark || state.ask || changed.length === 0) return state
  const { overlap, from, lateAt } = state
  const hasUntouched = state.hasUntouched || changed.some(({ isTouched }) => !isTouched)
  const isLate = changed.some(
    ({ at, isTouched }) => isTouched && at !== null && at.ms > from && at.ms < mark.ms - overlap,
  )
  if (!isLate) return { ...state, hasUntouched }
  if (lateAt === undefined || Math.abs(now - lateAt) >= DAY_MS) return { ...state, hasUntouched, lateAt: now }
  const wider = Math.max(overlap, Math.min(MOST_OVERLAP, 2 * overlap))
  // Changes that were late before say nothing of the wider overlap.
  return { ...state, hasUntouched, overlap: wider, from: mark.ms, lateAt: undefined }
}
