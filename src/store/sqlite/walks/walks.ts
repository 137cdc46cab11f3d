import type { BeginRun, HeldRemovals, OpenWalk, Walk, WalkClosing } from '../../../sync/store.ts'
import type { Checkpoint, Job, WalkOutcome } from '../../../sync/types.ts'
import { newWalk, resumedWalk, resumeSql, type WalkRow } from '../../walks.ts'
import type { Connection } from '../sql.ts'
import { recordColumns } from './column-counts.ts'
import { checkpointText } from './commit.ts'
import { createJobStore, nameOf, OF_JOB } from './jobs.ts'
import { forgetMissedBy, holdMissing, isOverlapped, removeMissing } from './missing.ts'
import { createRefreshStore } from './refreshes.ts'
import { createRunStore } from './runs.ts'

const ROWS_ADDED = `coalesce((SELECT rows_added FROM sync_jobs WHERE ${OF_JOB}), 0)`

/** `sync_walks`. */
export interface WalkStore {
  open(job: Job): OpenWalk[]
  begin(job: Job, begin: Pick<BeginRun, 'plan' | 'filters' | 'first' | 'brief'>, at: string): Walk
  /** See `resumeSql`. */
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
  const resumeWalk = connection.prepare(resumeSql(':walkId', ':at', ROWS_ADDED))
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
    begin(job, begin, at) {
      const { plan, filters, first, brief } = begin
      const row = insertWalk.get(
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
      return newWalk(row, begin, at)
    },
    resume(job, walkId, first, at) {
      type Stored = Omit<WalkRow, 'startedAt'> & { startedAt: string }
      const row = resumeWalk.get({ ...nameOf(job), walkId, at }) as Stored
      return resumedWalk({ ...row, startedAt: Date.parse(row.startedAt) }, first)
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
  if (kind === 'full') recordColumns(connection, nameOf(job), walkId)
  if (refresh) createRefreshStore(connection).save(job, refresh)
  return { heldBack: jobs.heldBack(job) }
}
