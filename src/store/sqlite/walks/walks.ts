import type { BeginRun, HeldRemovals, OpenWalk, Walk, WalkClosing } from '../../../sync/store.ts'
import type { Checkpoint, Job, WalkOutcome } from '../../../sync/types.ts'
import type { Connection } from '../sql.ts'
import { checkpointText } from './commit.ts'
import { createJobStore, nameOf, OF_JOB } from './jobs.ts'
import { forgetMissedBy, holdMissing, isOverlapped, removeMissing } from './missing.ts'
import { createRefreshStore } from './refreshes.ts'
import { createRunStore } from './runs.ts'

interface WalkRow {
  id: number
  pages: number
  kind: Walk['kind']
  first_page: number
  next_page: number | null
  passes: number
  rows_seen: number
  new_rejects: number
  untrusted: string | null
  account: string
  started_at: string
  rows_added_before: number
}

const ROWS_ADDED = `coalesce((SELECT rows_added FROM sync_jobs WHERE ${OF_JOB}), 0)`

/** `sync_walks`. */
export interface WalkStore {
  open(job: Job): OpenWalk[]
  begin(job: Job, begin: Pick<BeginRun, 'plan' | 'filters' | 'first' | 'brief'>, at: string): Walk
  /**
   * Loads an open walk; the caller then rebuilds its seen items. A walk without a page starts now, from `first`: its start
   * becomes the `as_of` of the list, and an earlier run may have been refused long ago.
   */
  resume(job: Job, walkId: number, first: Checkpoint, at: string): Walk
  /** How the job's last complete full walk ended; null when it has none. */
  lastOutcome(job: Job): Pick<WalkOutcome, 'coverage' | 'totalOff'> | null
  complete(walkId: number, runId: number, outcome: WalkOutcome, at: string): void
  abandon(walkId: number, at: string): void
}

export function createWalkStore(connection: Connection): WalkStore {
  const openWalks = connection.prepare(`
    SELECT id, origin, kind, path, filters, first_page AS firstPage, updated_at AS updatedAt
    FROM sync_walks
    WHERE organization_id = ? AND collection = ? AND status = 'open'
    ORDER BY id
  `)
  const insertWalk = connection.prepare(`
    INSERT INTO sync_walks (
      organization_id, collection, kind, filters, status, next_page, passes, started_at, updated_at, origin, path, first_page, account,
      brief, rows_added_before
    ) VALUES (?, ?, ?, ?, 'open', ?, ?, ?, ?, ?, ?, ?, ?, ?, ${ROWS_ADDED})
    RETURNING id, rows_added_before AS rowsAddedBefore
  `)
  const walkById = connection.prepare(
    `SELECT id, kind, first_page, next_page, passes, pages, rows_seen, new_rejects, untrusted, account, started_at, rows_added_before
    FROM sync_walks
    WHERE id = ?`,
  )
  const renewStart = connection.prepare(
    `UPDATE sync_walks SET started_at = ?, updated_at = ?, rows_added_before = ${ROWS_ADDED} WHERE id = ?`,
  )
  const lastOutcome = connection.prepare(`
    SELECT coverage, total_off AS totalOff
    FROM sync_walks
    WHERE organization_id = ? AND collection = ? AND status = 'complete' AND kind = 'full'
    ORDER BY id DESC
    LIMIT 1
  `)
  const completeWalk = connection.prepare(`
    UPDATE sync_walks
    SET
      status = 'complete',
      coverage = :coverage,
      expected_missed = :expectedMissed,
      untrusted = :untrusted,
      total_off = :totalOff,
      next_page = NULL,
      brief = brief AND coalesce((SELECT brief FROM sync_runs WHERE id = :runId), 0),
      updated_at = :at,
      finished_at = :at
    WHERE id = :walkId
  `)
  const abandonWalk = connection.prepare(`
    UPDATE sync_walks
    SET status = 'abandoned', updated_at = ?, finished_at = ?
    WHERE id = ? AND status = 'open'
  `)

  const forgetRefreshed = connection.prepare('DELETE FROM sync_refreshed WHERE walk_id = ?')

  function abandon(walkId: number, at: string): void {
    if (abandonWalk.run(at, at, walkId).changes === 0) return
    forgetMissedBy(connection, walkId)
    forgetRefreshed.run(walkId)
  }

  return {
    open({ organization, collection }) {
      type Stored = Omit<OpenWalk, 'updatedAt'> & { updatedAt: string }
      const stored = openWalks.all(organization.id, collection.name) as Stored[]
      return stored.map((walk) => ({ ...walk, updatedAt: Date.parse(walk.updatedAt) }))
    },
    begin(job, { plan, filters, first, brief }, at) {
      const { id, rowsAddedBefore } = insertWalk.get(
        job.organization.id,
        job.collection.name,
        plan.kind,
        filters,
        first.nextPage,
        first.pass,
        at,
        at,
        plan.origin,
        job.collection.path,
        plan.firstPage,
        checkpointText(first),
        brief ? 1 : 0,
        nameOf(job),
      ) as Pick<Walk, 'id' | 'rowsAddedBefore'>
      const { kind, firstPage } = plan
      return {
        id,
        kind,
        firstPage,
        checkpoint: first,
        resumed: false,
        startedAt: Date.parse(at),
        rowsAddedBefore,
        rowsSeen: 0,
        newRejects: 0,
        untrusted: null,
      }
    },
    resume(job, walkId, first, at) {
      const isBegun = (walkById.get(walkId) as WalkRow).pages > 0
      if (!isBegun) renewStart.run(at, at, walkId, nameOf(job))
      const row = walkById.get(walkId) as WalkRow
      const resumed = row.pages > 0
      const { ask, state } = JSON.parse(row.account) as Pick<Checkpoint, 'ask' | 'state'>
      return {
        id: row.id,
        kind: row.kind,
        firstPage: row.first_page,
        checkpoint: resumed ? { pass: row.passes, nextPage: row.next_page, ask, state } : first,
        resumed,
        startedAt: Date.parse(row.started_at),
        rowsAddedBefore: row.rows_added_before,
        rowsSeen: row.rows_seen,
        newRejects: row.new_rejects,
        untrusted: row.untrusted,
      }
    },
    lastOutcome: ({ organization, collection }) =>
      (lastOutcome.get(organization.id, collection.name) as
        | Pick<WalkOutcome, 'coverage' | 'totalOff'>
        | undefined) ?? null,
    complete(walkId, runId, outcome, at) {
      completeWalk.run({ ...outcome, at, walkId, runId })
      forgetRefreshed.run(walkId)
    },
    abandon,
  }
}

export interface CloseArgument extends Pick<WalkClosing, 'outcome' | 'removals' | 'refresh'> {
  job: Job
  walkId: number
  kind: 'full' | 'partial'
  runId: number
  at: string
}

/** Ends a walk inside the caller's transaction: removes rows or holds them back, completes or abandons it. */
export function closeWalk(
  connection: Connection,
  { job, walkId, kind, runId, outcome, removals, refresh, at }: CloseArgument,
): { heldBack: HeldRemovals | null } {
  const jobs = createJobStore(connection)
  const walks = createWalkStore(connection)
  if (outcome === null) {
    walks.abandon(walkId, at)
    return { heldBack: jobs.heldBack(job) }
  }
  if (removals === 'remove') createRunStore(connection).addRemoved(runId, removeMissing(connection, job, at))
  else if (removals !== 'none')
    holdMissing(connection, job, removals.hold === 'earlier' ? null : removals.hold)
  if (kind === 'full' && outcome.untrusted === null) jobs.confirm(job, isOverlapped(connection, job, walkId))
  walks.complete(walkId, runId, outcome, at)
  if (refresh) createRefreshStore(connection).keep(job, refresh)
  return { heldBack: jobs.heldBack(job) }
}
