import { type ErrorCode, KnownError } from '../../errors.ts'
import type { Upsert } from '../store.ts'
import { type Moment, momentIn, readMoment } from './moment.ts'
import { MINUTE, PER_PAGE } from './price.ts'

/** A parameter of the API that leaves out of a list what has not changed since a moment, and the field that holds when an item changed. */
export interface ChangedSinceRules {
  parameter: string
  /** Dotted path. */
  field: string
}

/** A page of what changed since a moment, to be asked for. */
export interface ChangesQuestion {
  /** As the API writes it. */
  since: string
  page: number
  /** Of the answer before. */
  total: number | null
  /** The largest value of the pages before it; null: they do not begin with the oldest changes. */
  above: number | null
  /** Asks for what changed since a moment to come: who gives rows of the past ignores the parameter. */
  isProbe: boolean
}

/** What is known of an API that can be asked so, between refreshes. It claims nothing: full walks and older pages find what it hides. */
export interface ChangedSince {
  /** As configured: of another parameter or field nothing is known. */
  rules: ChangedSinceRules
  /**
   * The largest value of the field in the first answer of a reading, as the API writes it: values of later answers are younger than changes
   * that those before them missed. Null: it is learned at the newest end.
   */
  mark: string | null
  /** Younger changes are found by asking so. By the API's clock, as all times that are compared with its values. */
  from: number
  /** What its values are rounded to, milliseconds. */
  unit: number
  /** Milliseconds before the mark that are asked for again. */
  overlap: number
  /** When the API was last asked for changes to come, by our clock; null: it is to be asked at once. */
  probedAt: number | null
  /** The page to ask for; null: all is read for now. */
  ask: ChangesQuestion | null
  /** What was read to its end last: no page of it is asked for again until something is added to it. */
  read: { since: string; total: number | null } | null
  /** Changes since `probedAt` that others found where this should have found them. */
  late: number
  /** Whether the API gives the oldest changes first; absent: not known to. */
  isRising?: boolean
  /** Whether rows have changed without their field. */
  hasUntouched: boolean
  /** Refusals in a row. */
  refused: number
  /** Why it is not asked any more; null: it is. */
  off: string | null
}

/** A row that a page of the list itself changed. */
export interface ChangedRow {
  /** Its field. */
  at: Moment | null
  /** Whether the field is another than before. */
  isTouched: boolean
}

export const DAY = 86_400_000
const HOUR = 3_600_000

/** What APIs round to. It shows in so many different values. */
const UNITS = [DAY, HOUR, MINUTE]
const ENOUGH_VALUES = 3

const LEAST_OVERLAP = 120_000
const MOST_OVERLAP = HOUR

/** So many late changes in a day double the overlap. */
const LATE = 2

/** A server that is being replaced may refuse once. */
const REFUSALS = 2

const NOTHING: Omit<ChangedSince, 'rules'> = {
  mark: null,
  from: 0,
  unit: 1,
  overlap: LEAST_OVERLAP,
  probedAt: null,
  ask: null,
  read: null,
  late: 0,
  hasUntouched: false,
  refused: 0,
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
  if (known.off !== null || known.ask) return known
  const state = known.mark === null ? withMark(known, shown, elapsed, now) : known
  if (state.mark === null) return state
  const { probedAt, late, overlap } = state
  if (probedAt !== null && Math.abs(now - probedAt) < DAY) return { ...state, ask: firstPage(state) }
  const wider = late < LATE ? overlap : Math.max(overlap, Math.min(MOST_OVERLAP, 2 * overlap))
  const mark = readMoment(state.mark)
  const ask = { ...firstPage(state), since: mark ? mark.write(mark.ms + DAY) : state.mark, isProbe: true }
  return { ...state, overlap: wider, late: 0, ask }
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
  // Rows may get one with their first change.
  return state
}

/** A row that is dated ahead says nothing of the API's clock, which may be some hours ahead itself: an older mark asks for more, a younger one misses some. */
function largestOf(times: readonly Moment[], now: number): Moment | null {
  const until = (end: number) =>
    times
      .filter(({ ms }) => ms <= end)
      .reduce<Moment | null>((most, one) => (most && most.ms >= one.ms ? most : one), null)
  return until(now + HOUR) ?? until(now + DAY)
}

function firstPage({ mark, overlap }: ChangedSince): ChangesQuestion {
  const moment = readMoment(mark ?? undefined)
  const since = moment ? moment.write(moment.ms - overlap) : ''
  return { since, page: 1, total: null, above: 0, isProbe: false }
}

export interface ChangesAnswer {
  /** The fields of its rows, in order. */
  values: readonly (Moment | null)[]
  total: number | null
  next: number | null
}

/** What an answer says, and which page to ask for next. @param listTotal Of the whole list. */
export function afterChanges(
  state: ChangedSince,
  { values, total, next }: ChangesAnswer,
  listTotal: number | null,
  now: number,
): ChangedSince {
  const { ask, mark, unit, rules } = state
  const since = readMoment(ask?.since)
  if (!ask || !since) return { ...state, ask: null }
  const times = values.filter((moment) => moment !== null)
  // It may compare with less than it shows.
  const isOlder = times.some(({ ms }) => ms < since.ms - Math.max(unit, MINUTE))
  if (isOlder || (ask.isProbe && values.length > 0 && times.length === 0)) {
    const off = `the API gave rows whose ${rules.field} is older than ${rules.parameter}: it ignores the parameter, or goes by another field`
    return { ...state, ask: null, off }
  }
  if (ask.isProbe) return { ...state, probedAt: now, ask: firstPage(state) }
  const isFirst = ask.page === 1
  const above = ask.above
  const isSorted = above !== null && times.every(({ ms }, index) => ms >= (times[index - 1]?.ms ?? above))
  const largest = isFirst || isSorted ? largestOf(times, now) : null
  const hasMoved = largest !== null && largest.ms > (readMoment(mark ?? undefined)?.ms ?? 0)
  const rises = isSorted && (times[0]?.ms ?? 0) < (times.at(-1)?.ms ?? 0)
  // One page may rise by chance.
  const isRising = isSorted && (state.isRising || (rises && !isFirst))
  const after = { ...state, isRising, mark: hasMoved ? largest.write(largest.ms) : mark, ask: null }
  // Nearly all has changed at once, which a walk reads as well; or the parameter is ignored, which the next question shows.
  const rows = total ?? ask.page * PER_PAGE
  if (listTotal !== null && rows > listTotal / 2 && rows > PER_PAGE)
    return { ...after, mark: null, probedAt: null }
  // What was taken out of the pages before has drawn as many rows to them.
  const fell = Math.max(0, (ask.total ?? 0) - (total ?? ask.total ?? 0))
  const isRead = state.read?.since === ask.since && state.read.total === total
  if ((next === null && fell === 0) || (isFirst && isRead))
    return { ...after, refused: 0, read: { since: ask.since, total } }
  // From the oldest change on, a page of younger ones cannot lose what moves behind it meanwhile.
  if (isFirst && isRising && rises && hasMoved) return { ...after, ask: firstPage(after) }
  const page = fell > 0 ? Math.max(1, ask.page - Math.ceil(fell / PER_PAGE)) : ask.page + 1
  return { ...after, ask: { ...ask, page, total, above: isSorted ? (times.at(-1)?.ms ?? above) : null } }
}

/** The request itself displeases an API that has just answered one without the parameter: it may even fail by it, or search for too long. */
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
  // Holds the token, as any does.
  'UNAUTHORIZED',
]

export function isRefusal(error: unknown): error is KnownError {
  return error instanceof KnownError && REFUSED.includes(error.code)
}

/** The state once the API refused a question. */
export function afterRefusal(state: ChangedSince, code: ErrorCode): ChangedSince {
  const refused = state.refused + 1
  const off = refused < REFUSALS ? null : `the API refuses requests with ${state.rules.parameter} (${code})`
  // Pages that were not read come again.
  const mark = state.ask && state.ask.page > 1 ? state.ask.since : state.mark
  return { ...state, mark, ask: null, refused, off }
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

/** What has to be told of a change of the state, once. */
export function changesWarnings(before: ChangedSince | undefined, after: ChangedSince): string[] {
  const { off, hasUntouched, rules } = after
  return [
    ...(off !== null && !before?.off ? [`changedSince is off: ${off}. Changes come as without it`] : []),
    ...(hasUntouched && !before?.hasUntouched
      ? [`a row changed and its ${rules.field} did not: such changes come with older pages and full walks`]
      : []),
  ]
}

/** Compares with what pages of the list itself changed. */
export function verifyChanges(state: ChangedSince, changed: readonly ChangedRow[]): ChangedSince {
  const mark = readMoment(state.mark ?? undefined)
  // Pages that are still to be read hold some of it.
  if (state.off !== null || !mark || state.ask || changed.length === 0) return state
  const isLate = ({ at, isTouched }: ChangedRow) =>
    isTouched && at !== null && at.ms > state.from && at.ms < mark.ms - state.overlap
  const hasUntouched = state.hasUntouched || changed.some(({ isTouched }) => !isTouched)
  return { ...state, late: state.late + changed.filter(isLate).length, hasUntouched }
}
