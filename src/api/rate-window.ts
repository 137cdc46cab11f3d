import { type Announcement, LONGEST_MS } from './rate-headers.ts'

const WINDOW_MS = 60_000

/** Servers count in whole seconds, so what they announce may end up to a second later. */
const ROUNDING_MS = 1000

/** Clocks and timers that are not quite alike, over one window. */
const SLACK_MS = 250

/** What we allow ourselves, and how we behave when the server says little. */
export interface RateRules {
  /** Our own ceiling: no 60 seconds hold more requests; null for none. */
  requestsPerMinute: number | null
  /** How much of the announced budget is ours. */
  sharePercent: number
  /** The wait after a 429 that does not say when to come back. */
  fallbackWaitMs: number
}

/** A window of the server as far as its headers tell. */
export interface Window {
  limit: number
  remaining: number
  /** How many of its requests were ours; those before its first answer are all taken for ours. */
  ours: number
  endsAt: number
}

/** What one budget knows of itself. */
export interface RateState {
  /** When the requests of the last 60 seconds were sent, oldest first. */
  sent: readonly number[]
  inFlight: number
  window: Window | null
  /** Whether any request has ended since the start or the last 429. */
  heard: boolean
  /** Nothing is sent before this time. */
  closedUntil: number
  /** 429s since the last other answer. */
  throttled: number
}

export const FRESH: RateState = {
  sent: [],
  inFlight: 0,
  window: null,
  heard: false,
  closedUntil: 0,
  throttled: 0,
}

/** Not before an answer to what is in flight. */
const AFTER_ANSWER = Number.POSITIVE_INFINITY

/**
 * When the next request may go, and what holds it back until then. Infinity stands for no time: an answer to what is in
 * flight has to come first.
 */
export function nextSend(state: RateState, rules: RateRules, now: number): { at: number; reason: string } {
  const free = { at: now, reason: 'nothing' }
  return [closedBy(state), ceilingBy(state, rules), silenceBy(state), windowBy(state, rules, now)].reduce(
    (latest, hold) => (hold.at > latest.at ? hold : latest),
    free,
  )
}

function closedBy(state: RateState) {
  return { at: state.closedUntil, reason: 'the server asked for a pause' }
}

function ceilingBy(state: RateState, rules: RateRules) {
  const most = rules.requestsPerMinute
  const oldest = most === null ? undefined : state.sent.at(-most)
  const at = oldest === undefined ? 0 : oldest + WINDOW_MS + 1
  return { at, reason: `our own limit of ${most} requests a minute` }
}

/** The first request goes alone: of several the server might refuse all, where one tells what is left. */
function silenceBy({ heard, inFlight }: RateState) {
  return { at: heard || inFlight === 0 ? 0 : AFTER_ANSWER, reason: 'the first answer of the server' }
}

function windowBy({ window, inFlight }: RateState, rules: RateRules, now: number) {
  const reason = `the server's limit of ${window?.limit ?? 0} requests a minute`
  if (!window) return { at: 0, reason }
  if (now < window.endsAt) return { at: leftFor(window, inFlight, rules) > 0 ? 0 : window.endsAt, reason }
  // All of a new window's budget may be on its way before an answer tells its end.
  const renewed = { ...window, remaining: window.limit, ours: 0 }
  return { at: inFlight === 0 || leftFor(renewed, inFlight, rules) > 0 ? 0 : AFTER_ANSWER, reason }
}

/** How many more may leave. Others are left their share, less what they have used of it already. */
function leftFor({ limit, remaining, ours }: Window, inFlight: number, rules: RateRules): number {
  const shareOfOthers = limit - Math.max(1, Math.floor((limit * rules.sharePercent) / 100))
  const usedByOthers = Math.max(0, limit - remaining - ours - inFlight)
  return remaining - Math.max(0, shareOfOthers - usedByOthers) - inFlight
}

/** The window that is known and not over. A request keeps the one it left in, since that tells what its answer means. */
export function currentWindow({ window }: RateState, now: number): Window | null {
  return window && now < window.endsAt ? window : null
}

/**
 * The state as far as it can be true now. What lies in the future was written before the clock went back: it counts as
 * of now, and has to be kept so, or nothing would ever leave; a pause further away than any server is believed is none.
 */
export function asOfNow(state: RateState, now: number): RateState {
  const { sent, window, closedUntil } = state
  return {
    ...state,
    sent: sent.map((time) => Math.min(time, now)),
    window: window && { ...window, endsAt: Math.min(window.endsAt, now + WINDOW_MS + ROUNDING_MS) },
    closedUntil: closedUntil - now > LONGEST_MS ? 0 : closedUntil,
  }
}

/** The budget after a request was sent. */
export function afterSend(state: RateState, rules: RateRules, now: number): RateState {
  const sent = rules.requestsPerMinute === null ? [] : state.sent.filter((time) => time > now - WINDOW_MS - 1)
  return {
    ...state,
    sent: rules.requestsPerMinute === null ? sent : [...sent, now],
    inFlight: state.inFlight + 1,
  }
}

/**
 * The budget after an answer other than 429, or after a request that got none (`told` null). `leftIn` is the
 * `currentWindow` of the moment in which the request left.
 */
export function afterAnswer(
  state: RateState,
  leftIn: Window | null,
  told: Announcement | null,
  now: number,
): RateState {
  const answered = { ...state, inFlight: state.inFlight - 1, heard: true }
  // Nothing leaves while the gate is closed: this one left before the 429 and tells of a window that is used up.
  if (now < state.closedUntil) return { ...answered, heard: state.heard }
  const ours = state.window && { ...state.window, ours: state.window.ours + 1 }
  if (!told) return { ...answered, window: ours }
  const { limit, remaining } = told
  // A limit of 0 is how some servers write that there is none; with this answer they have let one through.
  if (!limit || remaining === null) return { ...answered, throttled: 0, window: ours }
  const endsAt =
    now + (told.resetMs === null ? WINDOW_MS + SLACK_MS : Math.min(told.resetMs, WINDOW_MS) + ROUNDING_MS)
  const fresh = { limit, remaining, ours: limit - remaining, endsAt }
  return {
    ...answered,
    throttled: 0,
    window: nextWindow(currentWindow(state, now), leftIn, fresh, state.inFlight),
    closedUntil: Math.max(state.closedUntil, usedUpUntil(told, now)),
  }
}

/** A budget that is used up for longer than a window of ours is a pause, which outlasts a restart and may be refused. */
function usedUpUntil({ remaining, resetMs }: Announcement, now: number): number {
  const isLong = remaining === 0 && resetMs !== null && resetMs > WINDOW_MS
  return isLong ? now + Math.min(resetMs + ROUNDING_MS, LONGEST_MS) : 0
}

/**
 * Fixed windows begin with the first request that is counted, and nothing but the counter's jump tells so. An answer is
 * compared with what was known when its request left, since answers overtake each other; a small rise is no jump, since
 * some servers count badly under concurrency. The end is reckoned from the first answer, which is never too early.
 */
function nextWindow(known: Window | null, leftIn: Window | null, fresh: Window, inFlight: number): Window {
  if (!known) return fresh
  const counted = { ...known, ours: known.ours + 1, remaining: Math.min(known.remaining, fresh.remaining) }
  const isFirst = fresh.remaining >= fresh.limit - 1
  const jumped = leftIn !== null && (isFirst || fresh.remaining > leftIn.remaining + inFlight)
  if (leftIn?.endsAt === known.endsAt) return jumped ? fresh : counted
  // It left before the window that is known now was seen to begin, and may have been counted in the one before.
  return leftIn === null || jumped ? counted : known
}

/**
 * The budget after a 429. What the server told counts, else the end of the window as far as it is known, else the
 * fallback; and from the second 429 in a row on a growing pause, since whatever it told was not enough.
 * `jitterMs` keeps several processes from coming back in the same instant.
 */
export function afterThrottle(
  state: RateState,
  told: Announcement,
  rules: RateRules,
  now: number,
  jitterMs: number,
): RateState {
  // Of several that were in flight together, all but the first tell nothing of whether the pause was long enough.
  const isNews = now >= state.closedUntil
  const windowMs = state.window && state.window.endsAt > now ? state.window.endsAt - now : 0
  const toldMs = told.retryAfterMs ?? told.resetMs ?? Math.max(windowMs, rules.fallbackWaitMs)
  const grownMs =
    isNews && state.throttled > 0 ? Math.min(1000 * 2 ** state.throttled, rules.fallbackWaitMs) : 0
  const closedUntil = now + Math.min(Math.max(toldMs, grownMs) + ROUNDING_MS + jitterMs, LONGEST_MS)
  return {
    ...state,
    inFlight: state.inFlight - 1,
    window: null,
    heard: false,
    closedUntil: Math.max(state.closedUntil, closedUntil),
    throttled: state.throttled + (isNews ? 1 : 0),
  }
}
