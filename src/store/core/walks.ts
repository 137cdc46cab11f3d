import type { BeginRun, HeldRemovals, LedgerEntry, OpenWalk, Walk, WalkClosing } from '../../sync/store.ts'
import type { Checkpoint, Job, WalkOutcome } from '../../sync/types.ts'
import { confirmScope, heldRemovals, namesOf, OF_JOB, saveRefresh } from './jobs.ts'
import { holdMissing, isOverlapped, removeMissing } from './missing.ts'
import { addRemoved } from './runs.ts'
import { all, type Dialect, type Keys, msOf, one, type Rule, run, type StoredTime, timeOf } from './sql.ts'

// `sync_walks`, and `sync_pages`, their page ledger.

export function* openWalks(job: Job): Rule<OpenWalk[]> {
  const stored = yield* all<Omit<OpenWalk, 'updatedAt'> & { updatedAt: StoredTime }>(
    `
      SELECT id, origin, kind, path, filters, first_page AS "firstPage", updated_at AS "updatedAt"
      FROM sync_walks
      WHERE ${OF_JOB} AND status = 'open'
      ORDER BY id
    `,
    namesOf(job),
  )
  return stored.map((walk) => ({ ...walk, updatedAt: msOf(walk.updatedAt) }))
}

const ROWS_ADDED = `coalesce((SELECT rows_added FROM sync_jobs WHERE ${OF_JOB}), 0)`

export function* beginWalk(
  job: Job,
  { plan, filters, first, brief }: Pick<BeginRun, 'plan' | 'filters' | 'first' | 'brief'>,
  at: string,
): Rule<Walk> {
  const row = yield* one<Pick<Walk, 'id' | 'rowsAddedBefore'>>(
    `
      INSERT INTO sync_walks (
        organization_id, collection, kind, filters, status, next_page, passes, started_at, updated_at, origin, path, first_page, account,
        brief, rows_added_before
      )
      VALUES (
        :organization, :collection, :kind, :filters, 'open', :nextPage, :pass, :at, :at, :origin, :path, :firstPage, :account,
        :brief, ${ROWS_ADDED}
      )
      RETURNING id, rows_added_before AS "rowsAddedBefore"
    `,
    {
      ...namesOf(job),
      kind: plan.kind,
      filters,
      ...checkpointValues(first),
      at,
      origin: plan.origin,
      path: job.collection.path,
      firstPage: plan.firstPage,
      brief: brief ? 1 : 0,
    },
  )
  if (!row) throw new Error('the database returned no id for a new walk')
  const { kind, firstPage } = plan
  const fresh = { resumed: false, rowsSeen: 0, newRejects: 0, untrusted: null, startedAt: Date.parse(at) }
  return { ...row, kind, firstPage, checkpoint: first, ...fresh }
}

/**
 * Loads an open walk; the caller then rebuilds its seen items. A walk without a page starts now, with the checkpoint `first`: its start
 * becomes the `as_of` of the list, and an earlier run may have been refused long ago.
 */
export function* resumeWalk(job: Job, walkId: number, first: Checkpoint, at: string): Rule<Walk> {
  const row = yield* one<
    Omit<Walk, 'checkpoint' | 'resumed' | 'startedAt'> &
      Pick<Checkpoint, 'nextPage'> & { startedAt: StoredTime; pages: number; passes: number; account: string }
  >(
    `
      UPDATE sync_walks
      SET
        started_at = CASE WHEN pages > 0 THEN started_at ELSE :at END,
        updated_at = CASE WHEN pages > 0 THEN updated_at ELSE :at END,
        rows_added_before = CASE WHEN pages > 0 THEN rows_added_before ELSE ${ROWS_ADDED} END
      WHERE id = :walkId
      RETURNING
        id, kind, first_page AS "firstPage", next_page AS "nextPage", passes, pages, rows_seen AS "rowsSeen",
        new_rejects AS "newRejects", untrusted, account, started_at AS "startedAt", rows_added_before AS "rowsAddedBefore"
    `,
    { ...namesOf(job), walkId, at },
  )
  if (!row) throw new Error(`there is no walk ${walkId}`)
  const { pages, passes, nextPage, account, startedAt, ...walk } = row
  const kept = JSON.parse(account) as Omit<Checkpoint, 'pass' | 'nextPage'>
  const resumed = pages > 0
  const checkpoint = resumed ? { pass: passes, nextPage, ...kept } : first
  return { ...walk, resumed, checkpoint, startedAt: msOf(startedAt) }
}

/** Saves a checkpoint without an answer. */
export function saveCheckpoint(walkId: number, next: Checkpoint, at: number): Rule<number> {
  return run(
    'UPDATE sync_walks SET next_page = :nextPage, passes = :pass, account = :account, updated_at = :at WHERE id = :walkId',
    { walkId, ...checkpointValues(next), at: timeOf(at) },
  )
}

/** The columns of a walk's checkpoint. */
export function checkpointValues({ nextPage, pass, ask, state, addedBehind }: Checkpoint) {
  return { nextPage, pass, account: JSON.stringify({ ask, state, addedBehind }) }
}

export interface Closing extends Pick<WalkClosing, 'outcome' | 'removals' | 'refresh'> {
  job: Job
  walkId: number
  kind: 'full' | 'partial'
  runId: number
  at: string
}

/** Ends a walk: removes rows or holds them back, completes or abandons it. `keys`: null without tables. */
export function* closeWalk(
  dialect: Dialect,
  keys: Keys | null,
  { job, walkId, kind, runId, outcome, removals, refresh, at }: Closing,
): Rule<{ heldBack: HeldRemovals | null }> {
  if (outcome === null) {
    yield* abandonWalk(walkId, at)
    return { heldBack: yield* heldRemovals(job) }
  }
  if (removals === 'remove') yield* addRemoved(runId, yield* removeMissing(dialect, keys, job, at))
  else if (removals !== 'none') yield* holdMissing(job, removals.hold === 'earlier' ? null : removals.hold)
  if (kind === 'full' && outcome.untrusted === null)
    yield* confirmScope(job, yield* isOverlapped(dialect, job, walkId))
  yield* completeWalk(walkId, runId, outcome, at)
  if (refresh) yield* saveRefresh(job, refresh)
  return { heldBack: yield* heldRemovals(job) }
}

function* completeWalk(
  walkId: number,
  runId: number,
  { coverage, untrusted, totalOff }: WalkOutcome,
  at: string,
): Rule<void> {
  yield* run(
    `
      UPDATE sync_walks
      SET
        status = 'complete',
        coverage = :coverage,
        untrusted = :untrusted,
        total_off = :totalOff,
        next_page = NULL,
        brief = brief * coalesce((SELECT brief FROM sync_runs WHERE id = :runId), 0),
        updated_at = :at,
        finished_at = :at
      WHERE id = :walkId
    `,
    { walkId, runId, coverage, untrusted, totalOff, at },
  )
  yield* forgetRefreshed(walkId)
}

/** Abandons a walk. Rows that it was the first to miss are no longer missed; those that another walk missed before it stay as they are. */
export function* abandonWalk(walkId: number, at: string): Rule<void> {
  const abandoned = yield* run(
    "UPDATE sync_walks SET status = 'abandoned', updated_at = :at, finished_at = :at WHERE id = :walkId AND status = 'open'",
    { walkId, at },
  )
  if (abandoned === 0) return
  yield* run(
    `
      DELETE FROM sync_missing
      WHERE (organization_id, collection) IN (SELECT organization_id, collection FROM sync_walks WHERE id = :walkId)
        AND state IN ('missed', 'removable') AND missed_by = :walkId
    `,
    { walkId },
  )
  yield* forgetRefreshed(walkId)
}

/** What refreshes saw while the walk was open. */
function forgetRefreshed(walkId: number): Rule<number> {
  return run('DELETE FROM sync_refreshed WHERE walk_id = :walkId', { walkId })
}

/** An answer as the page ledger keeps it. */
interface LedgerRow extends Omit<LedgerEntry, 'ids' | 'positions'> {
  /** JSON list of the ids. */
  keys: string
  /** JSON list beside the keys: `[segment, position]` of each id, null for one that was known before. Null as a whole: see `LedgerEntry`. */
  places: string | null
}

type FoundAt = [segment: number, position: number] | null

/** Up to 500 answers of a walk after one, in order. */
export function* readLedger(walkId: number, after: number): Rule<LedgerEntry[]> {
  const rows = yield* all<LedgerRow>(
    `
      SELECT ordinal, pass, page, total, keys, why, places
      FROM sync_pages
      WHERE walk_id = :walkId AND ordinal > :after
      ORDER BY ordinal
      LIMIT 500
    `,
    { walkId, after },
  )
  return rows.map(entryOf)
}

export function ledgerRow({ ids, positions, ...answer }: LedgerEntry): LedgerRow {
  const found = positions?.map((position): FoundAt => position && [position.segment, position.position])
  return { ...answer, keys: JSON.stringify(ids), places: found ? JSON.stringify(found) : null }
}

function entryOf({ keys, places, ...answer }: LedgerRow): LedgerEntry {
  const found = places === null ? null : (JSON.parse(places) as FoundAt[])
  const positions = found?.map((at) => at && { segment: at[0], position: at[1] }) ?? null
  return { ...answer, ids: JSON.parse(keys) as string[], positions }
}
