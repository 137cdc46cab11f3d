import type { Announcement } from './rate-headers.ts'

const WINDOW_MS = 60_000

/** Servers count in whole seconds, so a window may end up to a second after the time that was announced for it. */
const ROUNDING_MS = 1000

/** What we allow ourselves, and how we behave when the server says little. */
export interface RateRules {
  /** Our own ceiling: no 60 seconds hold more requests; null for none. */
  requestsPerMinute: number | null
  /** How much of the announced budget is ours. */
  sharePercent: number
  /** The wait after a 429 that does not say when to come back. */
  fallbackWaitMs: number
}

/** What one budget knows of itself. */
export interface RateState {
  /** When the requests of the last 60 seconds were sent, oldest first. */
  sent: readonly number[]
  inFlight: number
  /** The server's current window as far as its headers tell. */
  window: { limit: number; remaining: number; endsAt: number } | null
  /** Nothing is sent before this time. */
  closedUntil: number
  /** 429s since the last other answer. */
  throttled: number
}

export const FRESH: RateState = { sent: [], inFlight: 0, window: null, closedUntil: 0, throttled: 0 }

/** When the next request may go, and what holds it back until then. */
export function nextSend(state: RateState, rules: RateRules, now: number): { at: number; reason: string } {
  const free = { at: now, reason: 'nothing' }
  return [closedBy(state), ceilingBy(state, rules), windowBy(state, rules, now)].reduce(
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

function windowBy(state: RateState, rules: RateRules, now: number) {
  const { window } = state
  const reason = `the server's limit of ${window?.limit ?? 0} requests a minute`
  if (!window || now >= window.endsAt) return { at: 0, reason }
  const notOurs = window.limit - Math.max(1, Math.floor((window.limit * rules.sharePercent) / 100))
  const left = window.remaining - notOurs - state.inFlight
  return { at: left > 0 ? 0 : window.endsAt, reason }
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

/** The budget after an answer other than 429, or after a request that got none (`told` null). */
export function afterAnswer(state: RateState, told: Announcement | null, now: number): RateState {
  const answered = { ...state, inFlight: state.inFlight - 1, throttled: told ? 0 : state.throttled }
  if (!told || told.limit === null || told.remaining === null) return answered
  return { ...answered, window: nextWindow(state, told.limit, told.remaining, told.resetMs, now) }
}

/**
 * Fixed windows begin with the first request that is counted, and nothing but the counter's jump tells so. The window's
 * end is taken from the moment its first answer came, which is never too early.
 */
function nextWindow(state: RateState, limit: number, remaining: number, resetMs: number | null, now: number) {
  const { window } = state
  // Answers may overtake each other, by as many as were in flight: a small rise is no new window.
  const began = !window || now >= window.endsAt || remaining > window.remaining + state.inFlight
  if (began)
    return { limit, remaining, endsAt: now + Math.min(resetMs ?? WINDOW_MS, WINDOW_MS) + ROUNDING_MS }
  return { limit, remaining: Math.min(window.remaining, remaining), endsAt: window.endsAt }
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
  const windowMs = state.window && state.window.endsAt > now ? state.window.endsAt - now : 0
  const toldMs = told.retryAfterMs ?? told.resetMs ?? Math.max(windowMs, rules.fallbackWaitMs)
  const grownMs = state.throttled === 0 ? 0 : Math.min(1000 * 2 ** state.throttled, rules.fallbackWaitMs)
  const closedUntil = now + Math.max(toldMs, grownMs) + ROUNDING_MS + jitterMs
  return {
    ...state,
    inFlight: state.inFlight - 1,
    window: null,
    closedUntil: Math.max(state.closedUntil, closedUntil),
    throttled: state.throttled + 1,
  }
}
