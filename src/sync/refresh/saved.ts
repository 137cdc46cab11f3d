import { filtersText } from '../resume.ts'
import type { Job } from '../types.ts'
import { type End, newestEnd, type RefreshRules } from './ends.ts'
import type { RefreshState } from './state.ts'

/** What a job saves between refreshes, and what people read of it. */
export interface SavedRefresh {
  state: RefreshState
  /** `sync_status.fresh_as_of`, unless `as_of` is later. Epoch milliseconds. */
  freshAsOf: number
  newest: End | null
}

/** What each job of a store saved. */
export interface JobRefresh {
  organizationId: string
  collection: string
  state: RefreshState
}

export function savedRefresh(state: RefreshState, { newest }: Pick<RefreshRules, 'newest'>): SavedRefresh {
  return { state, freshAsOf: state.freshAsOf, newest: newestEnd(state.places, newest) }
}

export function rulesOf({ collection }: Job): RefreshRules {
  return { total: collection.total, newest: collection.newest }
}

/** The list that a job reads, as text: what is known of one says nothing of another. */
export function scopeText({ collection }: Job): string {
  return `${collection.path} ${filtersText(collection.scope ?? collection.filters)}`
}
