import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import { beginLookBack } from './look-back.ts'
import { frontierAfter, mayAskAgain, withState } from './observe.ts'
import type { CoverageState, Frontier } from './state.ts'

/** Pages between two samples. */
const APART = 40

/** Whether repeated items are left unexplained that insertions behind the reader may explain. */
export function wantsSamples({
  closed,
  unexplained,
  found,
  relocated,
  unsettled,
  perPage,
}: CoverageState): boolean {
  return !closed.samples && unexplained > found && relocated === 0 && !unsettled && (perPage ?? 0) > 0
}

/**
 * Asks for one page in forty, from the middle of the list to its front, where most insertions are behind the reader.
 * Looks back from each sample to the next, until enough items are found.
 */
export function askSample(from: Checkpoint): Checkpoint {
  const { state } = from
  const { sample } = state
  if (!mayAskAgain(state) || (sample && sample.page <= 1)) return closeSamples(from)
  if (sample) return beginLookBack(from, sample, Math.max(1, sample.page - APART))
  const page = Math.max(1, Math.ceil(state.lastPage / 2))
  return { ...from, ask: { why: 'sample', page, until: null, before: null } }
}

/** An answer to `sample`, the first one. */
export function beginSamples(from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const state = { ...from.state, found: from.state.found + match.newToPass }
  const sample: Frontier | null = frontierAfter(null, state, page, match)
  const next = { ...from, state: { ...state, sample } }
  return sample ? next : closeSamples(next)
}

function closeSamples(from: Checkpoint): Checkpoint {
  return withState(from, { closed: { ...from.state.closed, samples: true } })
}
