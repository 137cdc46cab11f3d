import type { CommitResult, CommittedAnswer, PageCommit } from '../../../sync/store.ts'
import type { Job } from '../../../sync/types.ts'
import type { Connection } from '../sql.ts'
import type { Outcome } from '../tables/alter.ts'
import type { CollectionTables } from '../tables/collection.ts'
import type { JobStore } from './jobs.ts'
import { createSeenAgain } from './missing.ts'
import type { RunStore } from './runs.ts'
import type { WalkStore } from './walks.ts'

export interface CommitOptions {
  connection: Connection
  walks: WalkStore
  runs: RunStore
  jobs: JobStore
}

type AnswerCommit = PageCommit & { answer: CommittedAnswer }

/** Writes one answer inside the caller's transaction; or only returns the column changes that it needs. */
export type WriteAnswer = (
  job: Job,
  page: AnswerCommit,
  tables: CollectionTables,
  at: string,
) => Outcome<CommitResult>

export function createCommit({ connection, walks, runs, jobs }: CommitOptions): WriteAnswer {
  const renewReject = connection.prepare(`
    UPDATE sync_rejects SET seen_at = ? WHERE organization_id = ? AND collection = ? AND fingerprint = ?
  `)
  const addReject = connection.prepare(`
    INSERT INTO sync_rejects (organization_id, collection, page, reason, json, seen_at, fingerprint)
    VALUES (?, ?, ?, ?, ?, ?, ?)
  `)
  const seenAgain = createSeenAgain(connection)

  /** Returns how many of the rejects are new. */
  function saveRejects({ organization, collection }: Job, answer: CommittedAnswer, at: string): number {
    const isNew = answer.rejects.map(({ id, reason, text }) => {
      if (renewReject.run(at, organization.id, collection.name, id).changes > 0) return false
      addReject.run(organization.id, collection.name, answer.entry.page, reason, text, at, id)
      return true
    })
    return isNew.filter(Boolean).length
  }

  return (job, { walk, run, answer, next }, tables, at) => {
    const { upserts, keys, entry, newToWalk } = answer
    const rows = tables.toRows(
      keys.map(({ parts }) => parts),
      upserts.map(({ value }) => value),
    )
    if (rows.changes) return rows
    const keepsHistory = job.collection.history !== false
    for (const [index, { key, text, change }] of upserts.entries()) {
      const typed = rows.result[index]
      if (!typed) continue
      if (change === 'added') tables.insert(job.organization.id, key.parts, text, typed, at)
      else tables.update(job.organization.id, key.parts, text, typed, at, keepsHistory)
    }
    const notices = tables.extendViews(rows.result)
    const newRejects = saveRejects(job, answer, at)
    walks.addAnswer(walk.id, entry, { newToWalk, newRejects }, next, at)
    const added = upserts.filter(({ change }) => change === 'added').length
    runs.addPage(run, answer.items, { added, changed: upserts.length - added })
    jobs.addPage(job, added)
    seenAgain(
      job,
      keys.map(({ id }) => id),
    )
    return { result: { newRejects, notices }, notices: rows.notices }
  }
}
