import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import { lookBack } from './look-back.ts'
import { edgeAfter, mayAskAgain } from './observe.ts'
import type { CoverageState, Edge } from './state.ts'

/** So many pages lie between two samples. */
const APART = 40

/** Whether items came twice that are not explained yet, but may be by items that were put in between behind the reader. */
export function wantsSamples({
  closed,
  unpaid,
  found,
  wanderers,
  unsettled,
  perPage,
}: CoverageState): boolean {
  return !closed.samples && unpaid > found && wanderers === 0 && !unsettled && (perPage ?? 0) > 0
}

/**
 * Asks for one page in forty, from the middle of the list to its front, where most was put behind the reader, and looks
 * back from each to the next, until enough is found.
 */
export function askSample(from: Checkpoint): Checkpoint {
  const { account } = from
  const { sample } = account
  if (!mayAskAgain(account) || (sample && sample.page <= 1)) return closeSamples(from)
  if (sample) return lookBack(from, sample, Math.max(1, sample.page - APART))
  const page = Math.max(1, Math.ceil(account.lastPage / 2))
  return { ...from, ask: { why: 'sample', page, until: null, before: null } }
}

/** The answer that the samples begin with. */
export function beginSamples(from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const account = { ...from.account, found: from.account.found + match.newToPass }
  const sample: Edge | null = edgeAfter(null, account, page, match)
  const next = { ...from, ask: null, account: { ...account, sample } }
  return sample ? next : closeSamples(next)
}

function closeSamples(from: Checkpoint): Checkpoint {
  const { account } = from
  return { ...from, ask: null, account: { ...account, closed: { ...account.closed, samples: true } } }
}
