import { expectedMissed, totalOff } from './coverage/verdict.ts'
import type { PageWriter, PageWriterOptions } from './page-writer.ts'
import type { Refresher } from './refresh/refresher.ts'
import { afterFullWalk, rulesOf, type SavedRefresh, savedRefresh, scopeText } from './refresh/state.ts'
import { cameAtOnce, decideRemovals, type RemovalRules, whyUntrusted } from './removals.ts'
import type { SeenItems } from './seen.ts'
import type { HeldRemovals, Removals } from './store.ts'
import type { Reading, WalkOutcome } from './types.ts'

export interface EndOptions extends Omit<PageWriterOptions, 'replaces'> {
  seen: Pick<SeenItems, 'keyed'>
  refresher: Pick<Refresher, 'state'>
  writer: Omit<PageWriter, 'handle' | 'beginPass' | 'giveUp'>
  rules: RemovalRules
}

export interface WalkEnd extends WalkOutcome {
  /** Rows that seem to have left the list and stay until a person decides. */
  heldBack: HeldRemovals | null
}

/**
 * Removes rows that left the list, or holds them back, and completes the walk. If the process dies before, the next
 * one resumes the walk without a request and judges it again.
 */
export async function endWalk(options: EndOptions, reading: Reading): Promise<WalkEnd> {
  const { store, lease, run, walk } = options
  const { coverage, state } = reading
  const isFull = walk.kind === 'full'
  const untrusted = isFull ? (walk.untrusted ?? whyUntrusted(reading, options.writer.newRejects())) : null
  const outcome: WalkOutcome = {
    coverage,
    untrusted,
    expectedMissed: isFull ? expectedMissed(coverage, state) : null,
    totalOff: totalOff(coverage, state),
  }
  const removals = isFull && untrusted === null ? await judge(options, reading) : 'none'
  const refresh = isFull ? nextRefresh(options, reading) : null
  const { heldBack } = await store.closeWalk(lease, { walk, run, outcome, removals, refresh })
  return { ...outcome, heldBack }
}

/** What the next refresh starts from. */
function nextRefresh({ lease, walk, writer, refresher, times }: EndOptions, reading: Reading): SavedRefresh {
  const { coverage, state } = reading
  const { lastPage } = state
  const rules = rulesOf(lease.job)
  // A total that the walk could not count by is not used by refreshes either, whatever the API says.
  const isCounted = rules.total === 'check' && state.counted
  const complete = {
    scope: scopeText(lease.job),
    startedAt: walk.startedAt,
    endedAt: times.ofWalk(),
    addedBehindAt: writer.addedBehindAt(),
    addedEnds: writer.addedEnds(),
    lastPage,
    totals: isCounted ? { first: state.firstTotal, last: state.totals.last } : { first: null, last: null },
    isSteady: coverage === 'steady',
    isDrifted: coverage === 'drifted',
    written: writer.written(),
    rowsAdded: { first: walk.rowsAddedBefore, last: writer.rowsAdded() },
  }
  return savedRefresh(afterFullWalk(refresher.state(), complete, rules.newest), rules)
}

async function judge({ store, lease, walk, seen, rules }: EndOptions, reading: Reading): Promise<Removals> {
  const atOnce = cameAtOnce(reading)
  const missing = await store.findMissing(lease, { walkId: walk.id, keyed: seen.keyed, atOnce })
  const listed = Math.min(seen.keyed, reading.state.passDistinct)
  return decideRemovals({ ...missing, listed }, rules)
}
