import type { RefreshCommit, RefreshCommitted } from '../../../sync/refresh/saved.ts'
import type {
  CommitResult,
  CommittedAnswer,
  PageChanges,
  PageCommit,
  Run,
  RunTraffic,
  Upsert,
} from '../../../sync/store.ts'
import type { Checkpoint, Job, Notice } from '../../../sync/types.ts'
import { sqlitePath } from '../../columns/path.ts'
import { rowOf } from '../../ledger.ts'
import { type Connection, castParameter } from '../sql.ts'
import type { Outcome } from '../tables/alter.ts'
import type { CollectionTables } from '../tables/collection.ts'
import type { Written } from '../tables/rows.ts'
import { createSeqs } from '../tables/seq.ts'
import { nameOf, OF_JOB, scopeOf } from './jobs.ts'
import { countHeld } from './missing.ts'
import { createRefreshStore } from './refreshes.ts'

// All that one page writes, inside the caller's transaction.

type AnswerCommit = PageCommit & { answer: CommittedAnswer }

export interface Commit {
  /** Writes one answer; or only returns the column changes that it needs. */
  answer(job: Job, page: AnswerCommit, tables: CollectionTables): Outcome<CommitResult>
  /** Writes one page of a refresh; or only returns the column changes that it needs. */
  refreshed(job: Job, page: RefreshCommit, tables: CollectionTables): Outcome<RefreshCommitted>
  /** Saves a checkpoint without an answer. */
  checkpoint(walkId: number, next: Checkpoint, at: string): void
}

const IS_OTHER_LIST = '(scope_path <> :path OR scope_filters <> :filters)'

export function createCommit(connection: Connection): Commit {
  const { save } = createRefreshStore(connection)
  const nextSeq = createSeqs(connection)
  const addAnswer = connection.prepare(`
    INSERT INTO sync_pages (walk_id, ordinal, pass, page, total, keys, read_at, why, places)
    VALUES (:walkId, :ordinal, :pass, :page, :total, :keys, :at, :why, :places)
  `)
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
      rows_added = rows_added + :added,
      rows_changed = rows_changed + :changed,
      brief = iif(:added + :changed > 0, 0, brief),
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
      rows_added = rows_added + :added,
      scope_mixed = scope_mixed OR coalesce(${IS_OTHER_LIST}, 0),
      scope_path = coalesce(scope_path, :path),
      scope_filters = coalesce(scope_filters, :filters)
    WHERE ${OF_JOB}
      AND (:added <> 0 OR scope_path IS NULL OR (scope_mixed = 0 AND ${IS_OTHER_LIST}))
  `)
  const rowsAdded = connection.prepare(`SELECT rows_added FROM sync_jobs WHERE ${OF_JOB}`).pluck()
  const isReject = 'organization_id = ? AND collection = ? AND fingerprint = ?'
  const meetReject = connection.prepare(
    `UPDATE sync_rejects SET seen_at = ?, only_refreshed = 0 WHERE ${isReject} AND only_refreshed = 1`,
  )
  const renewReject = connection.prepare(`UPDATE sync_rejects SET seen_at = ? WHERE ${isReject}`)
  const addReject = connection.prepare(`
    INSERT INTO sync_rejects (organization_id, collection, page, reason, json, seen_at, fingerprint, only_refreshed)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  `)
  const countAsSeen = connection.prepare(`
    INSERT INTO sync_refreshed (walk_id, keys)
    SELECT id, :ids FROM sync_walks WHERE ${OF_JOB} AND status = 'open' AND kind = 'full'
  `)
  const ofJob = `organization_id = ${castParameter('TEXT', ':organization')} AND collection = ${castParameter('TEXT', ':collection')}`
  const hasMissing = connection.prepare(`SELECT 1 FROM sync_missing WHERE ${ofJob} LIMIT 1`)
  const dropMissing = connection.prepare(
    `DELETE FROM sync_missing WHERE ${ofJob} AND key IN (SELECT value FROM json_each(:ids))`,
  )

  /**
   * Returns how many of the rejects are new. Those that only refreshes have met are new to a full walk: one may be a row
   * that lost its key.
   */
  function saveRejects({ organization, collection }: Job, page: PageChanges, by: Reader, at: string): number {
    const isNew = page.rejects.map(({ id, reason, text }) => {
      const reject = [organization.id, collection.name, id]
      if (by === 'full' && meetReject.run(at, ...reject).changes > 0) return true
      if (renewReject.run(at, ...reject).changes > 0) return false
      const onlyRefreshed = by === 'refresh' ? 1 : 0
      addReject.run(organization.id, collection.name, page.page, reason, text, at, id, onlyRefreshed)
      return true
    })
    return isNew.filter(Boolean).length
  }

  /** An item that is seen again is no longer missing. Most jobs have no missing rows, so check first. */
  function seenAgain(job: Job, ids: string): void {
    if (hasMissing.get(nameOf(job)) === undefined) return
    if (dropMissing.run({ ...nameOf(job), ids }).changes > 0) countHeld(connection, job)
  }

  /** What the page of a walk and that of a refresh write alike. */
  function savePage(job: Job, page: PageChanges, { tables, run, by, at }: Writing): Outcome<SavedPage> {
    const { upserts, keys } = page
    const written = () => ({ at, seq: nextSeq(job.collection.name, at) })
    const saved = saveRows(job, upserts, tables, written)
    if (saved.changes) return saved
    const newRejects = saveRejects(job, page, by, at)
    const added = upserts.filter(({ change }) => change === 'added').length
    const changed = upserts.length - added
    addToRun.run(page.items, ...trafficNumbers(run.traffic), run.id, { added, changed })
    addToJob.run({ ...nameOf(job), ...scopeOf(job), added })
    const ids = JSON.stringify(keys.map(({ id }) => id))
    seenAgain(job, ids)
    const result = { newRejects, notices: saved.result, rowsAdded: rowsAdded.get(nameOf(job)) as number, ids }
    return { result, notices: saved.notices }
  }

  return {
    answer(job, { walk, run, answer, next, at: time }, tables) {
      const at = new Date(time).toISOString()
      const saved = savePage(job, answer, { tables, run, by: walk.kind, at })
      if (saved.changes) return saved
      const { newRejects } = saved.result
      const { entry, newToWalk } = answer
      addAnswer.run({ ...rowOf(entry), walkId: walk.id, at })
      const { nextPage, pass } = next
      countAnswer.run(newToWalk, newRejects, entry.total, nextPage, pass, checkpointText(next), at, walk.id)
      return saved
    },
    refreshed(job, { run, at: time, saved: refresh, ...page }, tables) {
      const at = new Date(time).toISOString()
      const saved = savePage(job, page, { tables, run, by: 'refresh', at })
      if (saved.changes) return saved
      countAsSeen.run({ ...nameOf(job), ids: saved.result.ids })
      if (refresh) save(job, refresh)
      return saved
    },
    checkpoint(walkId, next, at) {
      saveCheckpoint.run(next.nextPage, next.pass, checkpointText(next), at, walkId)
    },
  }
}

/** Who reads a page. */
type Reader = 'full' | 'partial' | 'refresh'

interface Writing {
  tables: CollectionTables
  run: Run
  by: Reader
  at: string
}

interface SavedPage {
  newRejects: number
  rowsAdded: number
  notices: Notice[]
  /** JSON list of the ids on the page. */
  ids: string
}

/** Writes new and changed rows, and the views of their arrays. Its result: notices about these views. */
function saveRows(
  { organization, collection }: Job,
  upserts: readonly Upsert[],
  tables: CollectionTables,
  written: () => Written,
): Outcome<Notice[]> {
  if (upserts.length === 0) return { result: [], notices: [] }
  const rows = tables.toRows(
    upserts.map(({ key }) => key.parts),
    upserts.map(({ value }) => value),
  )
  if (rows.changes) return rows
  const event = written()
  for (const [index, { key, text, change, fields = [] }] of upserts.entries()) {
    const typed = rows.result[index]
    if (!typed) continue
    const kept = collection.history === false ? null : fields.map(sqlitePath)
    if (change === 'added') tables.insert(organization.id, key.parts, text, typed, event)
    else tables.update(organization.id, key.parts, text, typed, event, kept)
  }
  return { result: tables.extendViews(rows.result), notices: rows.notices }
}

/** The column `account` of a walk. */
export function checkpointText({ ask, state, addedBehind }: Checkpoint): string {
  return JSON.stringify({ ask, state, addedBehind })
}

/** Also written with each page: a killed run cannot write them later. */
export function trafficNumbers({ requests, retries, rateLimitHits, rateLimitWaitMs }: RunTraffic): number[] {
  return [requests, retries, rateLimitHits, Math.round(rateLimitWaitMs)]
}
