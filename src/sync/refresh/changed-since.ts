import { type ErrorCode, KnownError } from '../../errors.ts'
import { counted } from '../../text.ts'
import type { Upsert } from '../store.ts'
import type { Filters, Job, Page } from '../types.ts'
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
}

/** What is known of an API that can be asked so, between refreshes. It claims nothing: full walks and older pages find what it hides. */
export interface ChangedSince {
  /** As configured: of another parameter or field nothing is known. */
  rules: ChangedSinceRules
  /**
   * The largest value of the field up to the first answer of a reading, as the API writes it: values of later answers are younger than
   * changes that those before them missed. Null: it is learned at the newest end.
   */
  mark: string | null
  /** The largest value of all answers: the mark of the reading after them, whatever its first answer holds. */
  seen?: string | null
  /** Younger changes are found by asking so. By the API's clock, as all times that are compared with its values. */
  from: number
  /** What its values are rounded to, milliseconds. */
  unit: number
  /** Milliseconds before the mark that are asked for again. */
  overlap: number
  /** The page to ask for; null: all is read for now. */
  ask: ChangesQuestion | null
  /** What was read to its end last: no page of it is asked for again until something is added to it. */
  read: { since: string; total: number | null } | null
  /** When others found a change that this should have found, by our clock; absent: never since the overlap was doubled. */
  lateAt?: number | undefined
  /** Whether the API gives the oldest changes first; absent: not known to. */
  isRising?: boolean
  /** Whether rows have changed without their field. */
  hasUntouched: boolean
  /** Tries in a row that were of no use; a refusal counts as half of those that turn it off. */
  useless?: number
  /** Why it is not asked; null: it is. Stays until a question was answered to its end. */
  off: string | null
  /** When it is tried again, by our clock; null: never; absent: at once, since an earlier version has turned it off. */
  againAt?: number | null
}

/** A row that a page of the list itself changed. */
export interface ChangedRow {
  /** Its field. */
  at: Moment | null
  /** Whether the field is another than before. */
  isTouched: boolean
}

const DAY = 86_400_000
const HOUR = 3_600_000

/** What APIs round to. It shows in so many different values. */
const UNITS = [DAY, HOUR, MINUTE]
const ENOUGH_VALUES = 3

const LEAST_OVERLAP = 120_000
const MOST_OVERLAP = HOUR

/** After so many tries in a row that gave nothing, or more than half of the list, the API is not asked for a day: an hour of them, if it is each five minutes. */
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
function isOff({ off, againAt }: ChangedSince, now: number): boolean {
  if (off === null) return false
  // An earlier version kept no time: of a token that it held, the text alone tells.
  const next = againAt === undefined ? (off.endsWith('(UNAUTHORIZED)') ? null : 0) : againAt
  return next === null || (now < next && next - now <= DAY)
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
  const until = (end: number) => later(...times.filter(({ ms }) => ms <= end))
  return until(now + HOUR) ?? until(now + DAY)
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

/** What an answer says, and which page to ask for next. @param listTotal Of the whole list. */
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
  // It may compare with less than it shows.
  if (times.some(({ ms }) => ms < since.ms - Math.max(unit, MINUTE))) {
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
  // One page may rise by chance.
  const isRising = isSorted && (state.isRising || (rises && !isFirst))
  const after = { ...state, isRising, mark: textOf(moved), seen: textOf(later(before, shown)), ask: null }
  const rows = total ?? ask.page * PER_PAGE
  // Nearly all has changed at once, which a walk reads as well; or the parameter is ignored.
  if (listTotal !== null && rows > listTotal / 2 && rows > PER_PAGE)
    return afterUseless(forgetMark(after), 'gave more than half of the list', now)
  if (isFirst && values.length === 0)
    return afterUseless(after, 'gave nothing, though rows have changed', now)
  // What was taken out of the pages before has drawn as many rows to them.
  const fell = Math.max(0, (ask.total ?? 0) - (total ?? ask.total ?? 0))
  const isRead = state.read?.since === ask.since && state.read.total === total
  if ((next === null && fell === 0) || (isFirst && isRead))
    return { ...after, useless: 0, off: null, read: { since: ask.since, total } }
  // From the oldest change on, a page of younger ones cannot lose what moves behind it meanwhile.
  if (isFirst && isRising && rises && moved !== mark) return { ...after, ask: firstPage(after) }
  const page = fell > 0 ? Math.max(1, ask.page - Math.ceil(fell / PER_PAGE)) : ask.page + 1
  return { ...after, ask: { ...ask, page, total, above: isSorted ? (times.at(-1)?.ms ?? above) : null } }
}

/** An answer of no use says little: the row that the mark comes from may have gone. So it is learned anew before the API is not asked any more. */
function afterUseless(state: ChangedSince, what: string, now: number): ChangedSince {
  const useless = (state.useless ?? 0) + 1
  if (useless >= MOST_USELESS)
    return turnOff({ ...state, useless }, `${useless} times in a row the API ${what}`, now)
  return { ...(useless === MOST_USELESS / 2 ? forgetMark(state) : state), useless }
}

/** One request a day then shows whether that has passed, as after an hour in which nearly all changed. */
function turnOff(state: ChangedSince, why: string, now: number): ChangedSince {
  return { ...forgetMark(state), ask: null, off: `${why}; it is tried again each day`, againAt: now + DAY }
}

function forgetMark(state: ChangedSince): ChangedSince {
  return { ...state, mark: null, seen: null }
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
  // Each of these holds the token.
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

/** What has to be told of a change of the state, once. */
export function changesWarnings(before: ChangedSince | undefined, after: ChangedSince): string[] {
  const { off, hasUntouched, rules } = after
  return [
    ...(off !== null && !before?.off ? [`changedSince is off: ${off}. Changes come as without it`] : []),
    ...(off === null && before?.off ? [`changedSince is on again: the API gives what changed`] : []),
    ...(hasUntouched && !before?.hasUntouched
      ? [`a row changed and its ${rules.field} did not: such changes come with older pages and full walks`]
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
  if (lateAt === undefined || Math.abs(now - lateAt) >= DAY) return { ...state, hasUntouched, lateAt: now }
  const wider = Math.max(overlap, Math.min(MOST_OVERLAP, 2 * overlap))
  // What others were late with before says nothing of the wider one.
  return { ...state, hasUntouched, overlap: wider, from: mark.ms, lateAt: undefined }
}

export type Ask = (page: number, more: Filters) => Promise<Page>

export interface Tried {
  isHeeded: boolean
  /** What was seen. */
  text: string
}

/**
 * Asks for what changed since shortly before the youngest change on a page, as refreshes do: an API that gives older rows ignores the
 * parameter, and one that gives none leaves out what it should give. Null: nothing is configured.
 * @param page The first one of the list.
 */
export async function tryChanges(
  { collection }: Job,
  page: Page,
  ask: Ask,
  now: number,
): Promise<Tried | null> {
  const { changedSince: rules, ignore } = collection
  if (!rules) return null
  const { parameter, field } = rules
  const valuesOf = ({ items }: Page) => items.map(({ value }) => momentIn(value, field))
  const begun = beginChanges(undefined, rules, valuesOf(page), 0, now)
  if (page.items.length === 0) return { isHeeded: true, text: 'not tried, since the list is empty' }
  if (!begun.ask) return { isHeeded: false, text: `no row of the first page has a time in ${field}` }
  const { since } = begun.ask
  try {
    const answer = await ask(1, { [parameter]: since })
    const { off } = afterChanges(begun, { ...answer, values: valuesOf(answer) }, null, now)
    if (off !== null) return { isHeeded: false, text: off }
    if (answer.items.length === 0)
      return {
        isHeeded: false,
        text: `asked for what changed after ${since}, the API gave nothing, though a row did`,
      }
    const rows = counted(answer.total ?? answer.items.length, 'row')
    const unseen = ignore.includes(field)
      ? `; ${field} is in ignore, so nothing will show which changes it hides`
      : ''
    return {
      isHeeded: true,
      text: `${rows} changed after ${since}, says the API: it heeds ${parameter}${unseen}`,
    }
  } catch (error) {
    if (!isRefusedQuestion(error) || error.code === 'UNAUTHORIZED') throw error
    return { isHeeded: false, text: `the API refuses requests with ${parameter}: ${error.message}` }
  }
}
