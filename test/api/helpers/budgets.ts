import type { RateRules } from '../../../src/api/rate/budget.ts'
import type { RateHeaders } from '../../../src/api/rate/headers.ts'

export const NOW = Date.UTC(2026, 10, 20, 8, 30)
export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const DAY = 24 * 60 * MINUTE

export const RULES: RateRules = {
  requestsPerMinute: null,
  sharePercent: 100,
  refreshPercent: 10,
  fallbackWaitMs: MINUTE,
}

export const NOTHING: RateHeaders = { limit: null, remaining: null, resetMs: null, retryAfterMs: null }

export function announced(limit: number, remaining: number, resetMs: number | null = null): RateHeaders {
  return { ...NOTHING, limit, remaining, resetMs }
}
