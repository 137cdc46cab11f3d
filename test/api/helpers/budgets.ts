import { type Budget, FRESH, type InFlight, type RateRules } from '../../../src/api/rate/budget.ts'
import type { RateHeaders } from '../../../src/api/rate/headers.ts'
import type { Window } from '../../../src/api/rate/window.ts'

export const NOW = Date.UTC(2026, 10, 20, 8, 30)
export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const DAY = 24 * 60 * MINUTE

export const RULES: RateRules = { requestsPerMinute: null, sharePercent: 100, fallbackWaitMs: MINUTE }

export const NOTHING: RateHeaders = { limit: null, remaining: null, resetMs: null, retryAfterMs: null }

export function announced(limit: number, remaining: number, resetMs: number | null = null): RateHeaders {
  return { ...NOTHING, limit, remaining, resetMs }
}

export function windowOf(changed: Partial<Window> = {}): Window {
  return { limit: 60, remaining: 30, ours: 30, endsAt: NOW + 20 * SECOND, ...changed }
}

/** A budget of which an answer was heard a moment ago. */
export function budgetWith(changed: Partial<Budget> = {}): Budget {
  return { ...FRESH, heardAt: NOW - 1, ...changed }
}

/** Requests of another process. */
export function flightOf(changed: Partial<InFlight> = {}): InFlight {
  return { by: 'another', count: 1, at: NOW - SECOND, ...changed }
}
