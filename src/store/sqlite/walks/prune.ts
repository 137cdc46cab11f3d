import type { Job } from '../../../sync/types.ts'
import { type PruneTimes, pruneSql } from '../../prune.ts'
import type { Connection } from '../sql.ts'
import { nameOf } from './jobs.ts'

/** Lines of the page ledger: some tens of milliseconds. */
const PRUNED_AT_ONCE = 2000

/** Returns a function that deletes a batch of what a job's runs left. It returns true when none is left. */
export function createPruning(connection: Connection): (job: Job, times: PruneTimes) => boolean {
  const sql = pruneSql({
    organization: ':organization',
    collection: ':collection',
    before: ':before',
    briefBefore: ':briefBefore',
    overlapBefore: ':overlapBefore',
    most: ':rows',
    join: 'CROSS JOIN',
    line: '_rowid_',
    order: '_rowid_',
  })
  const distrust = connection.prepare(sql.distrust)
  const statements = sql.deletes.map((text) => connection.prepare(text))
  return (job, { before, briefBefore, overlapBefore }) => {
    distrust.run({ ...nameOf(job), overlapBefore })
    let left = PRUNED_AT_ONCE
    for (const statement of statements) {
      left -= statement.run({ ...nameOf(job), before, briefBefore, rows: left }).changes
      if (left <= 0) return false
    }
    return true
  }
}
