import type { CommitResult, CommittedAnswer, PageCommit, RunTraffic } from '../../../sync/store.ts'
import type { Checkpoint, Job } from '../../../sync/types.ts'
import { sqlitePath } from '../../columns/path.ts'
import { type Connection, castParameter } from '../sql.ts'
import type { Outcome } from '../tables/alter.ts'
import type { CollectionTables } from '../tables/collection.ts'
import { nameOf, OF_JOB, scopeOf } from './jobs.ts'
import { createLedger } from './ledger.ts'
import { countHeld } from './missing.ts'

// All that one answer writes, inside the caller's transaction.

type AnswerCommit = PageCommit & { answer: CommittedAnswer }

export interface Commit {
  /** Writes one answer; or only returns the column changes that it needs. */
  answer(job: Job, page: AnswerCommit, tables: CollectionTables, at: string): Outcome<CommitResult>
  /** Saves a checkpoint without an answer. */
  checkpoint(walkId: number, next: Checkpoint, at: string): void
}

const IS_OTHER_LIST = '(scope_path <> :path OR scope_filters <> :filters)'

export function createCommit(connection: Connection): Commit {
  const ledger = createLedger(connection)
  const countAnswer = connection.prepare(`
    UPDATE sync_walks
    SET
      pages = pages + 1,
      rows_seen = rows_seen + ?,
      new_rejects = new_rejects + ?,
      total = coalesce(?, total),
      next_page = ?,
      passes = ?,
      account = ?,
      updated_at = ?
    WHERE id = ?
  `)
  const saveCheckpoint = connection.prepare(
    'UPDATE sync_walks SET next_page = ?, passes = ?, account = ?, updated_at = ? WHERE id = ?',
  )
  const addToRun = connection.prepare(`
    UPDATE sync_runs
    SET
      pages = pages + 1,
      rows_seen = rows_seen + ?,
      rows_added = rows_added + ?,
      rows_changed = rows_changed + ?,
      requests = ?,
      retries = ?,
      rate_limit_hits = ?,
      rate_limit_wait_ms = ?
    WHERE id = ?
  `)
  // A page without new rows changes nothing here, and then nothing is written.
  const addToJob = connection.prepare(`
    UPDATE sync_jobs
    SET
      rows = rows + :added,
      scope_mixed = scope_mixed OR coalesce(${IS_OTHER_LIST}, 0),
      scope_path = coalesce(scope_path, :path),
      scope_filters = coalesce(scope_filters, :filters)
    WHERE ${OF_JOB}
      AND (:added <> 0 OR scope_path IS NULL OR (scope_mixed = 0 AND ${IS_OTHER_LIST}))
  `)
  const renewReject = connection.prepare(`
    UPDATE sync_rejects SET seen_at = ? WHERE organization_id = ? AND collection = ? AND fingerprint = ?
  `)
  const addReject = connection.prepare(`
    INSERT INTO sync_rejects (organization_id, collection, page, reason, json, seen_at, fingerprint)
    VALUES (?, ?, ?, ?, ?, ?, ?)
  `)
  const ofJob = `organization_id = ${castParameter('TEXT', ':organization')} AND collection = ${castParameter('TEXT', ':collection')}`
  const hasMissing = connection.prepare(`SELECT 1 FROM sync_missing WHERE ${ofJob} LIMIT 1`)
  const dropMissing = connection.prepare(
    `DELETE FROM sync_missing WHERE ${ofJob} AND key IN (SELECT value FROM json_each(:ids))`,
  )

  /** Returns how many of the rejects are new. */
  function saveRejects({ organization, collection }: Job, answer: CommittedAnswer, at: string): number {
    const isNew = answer.rejects.map(({ id, reason, text }) => {
      if (renewReject.run(at, organization.id, collection.name, id).changes > 0) return false
      addReject.run(organization.id, collection.name, answer.entry.page, reason, text, at, id)
      return true
    })
    return isNew.filter(Boolean).length
  }

  /** An item that is seen again is no longer missing. Most jobs have no missing rows, so check first. */
  function seenAgain(job: Job, { keys }: CommittedAnswer): void {
    if (hasMissing.get(nameOf(job)) === undefined) return
    const ids = JSON.stringify(keys.map(({ id }) => id))
    if (dropMissing.run({ ...nameOf(job), ids }).changes > 0) countHeld(connection, job)
  }

  return {
    answer(job, { walk, run, answer, next }, tables, at) {
      const { upserts, keys, entry, newToWalk } = answer
      const rows = tables.toRows(
        keys.map(({ parts }) => parts),
        upserts.map(({ value }) => value),
      )
      if (rows.changes) return rows
      saveRows(job, answer, { tables, typed: rows.result }, at)
      const notices = tables.extendViews(rows.result)
      const newRejects = saveRejects(job, answer, at)
      ledger.add(walk.id, entry, at)
      const { nextPage, pass } = next
      countAnswer.run(newToWalk, newRejects, entry.total, nextPage, pass, checkpointText(next), at, walk.id)
      const added = upserts.filter(({ change }) => change === 'added').length
      addToRun.run(answer.items, added, upserts.length - added, ...trafficNumbers(run.traffic), run.id)
      addToJob.run({ ...nameOf(job), ...scopeOf(job), added })
      seenAgain(job, answer)
      return { result: { newRejects, notices }, notices: rows.notices }
    },
    checkpoint(walkId, next, at) {
      saveCheckpoint.run(next.nextPage, next.pass, checkpointText(next), at, walkId)
    },
  }
}

interface WrittenRows {
  tables: CollectionTables
  typed: Parameters<CollectionTables['extendViews']>[0]
}

function saveRows(job: Job, { upserts }: CommittedAnswer, rows: WrittenRows, at: string): void {
  const { organization, collection } = job
  for (const [index, { key, text, change, fields = [] }] of upserts.entries()) {
    const typed = rows.typed[index]
    if (!typed) continue
    const kept = collection.history === false ? null : fields.map(sqlitePath)
    if (change === 'added') rows.tables.insert(organization.id, key.parts, text, typed, at)
    else rows.tables.update(organization.id, key.parts, text, typed, at, kept)
  }
}

/** The column `account` of a walk. */
export function checkpointText({ ask, state }: Checkpoint): string {
  return JSON.stringify({ ask, state })
}

/** Also written with each page: a killed run cannot write them later. */
export function trafficNumbers({ requests, retries, rateLimitHits, rateLimitWaitMs }: RunTraffic): number[] {
  return [requests, retries, rateLimitHits, Math.round(rateLimitWaitMs)]
}
