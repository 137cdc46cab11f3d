import type { HeldRemovals, HoldReason } from '../../../sync/removals.ts'
import type { Job } from '../../../sync/types.ts'
import { sortedJson } from '../../../text.ts'
import type { Connection } from '../file/open.ts'

/** A job's line of `sync_jobs`, as far as removals need it. */
export interface JobState {
  /** Live ones. */
  rows: number
  held: number
  judgedWalk: number | null
  /** Whether the list that is read now is another one than that of the last trusted walk. */
  isOtherScope: boolean
  /** Whether pages of another list were written since. */
  isMixed: boolean
}

/** `sync_jobs`. Scope: the list that a job reads, its path and the configured filters. */
export interface JobStore {
  state(job: Job): JobState
  addRows(job: Job, rows: number): void
  addHeld(job: Job, rows: number): void
  holdFor(job: Job, why: HoldReason): void
  held(job: Job): HeldRemovals | null
  /** Notes which list a page comes from. */
  readFrom(job: Job): void
  judge(job: Job, walkId: number): void
  /** A trusted walk has been judged to its end: what is live now is listed in this scope, or known to be missing. */
  confirm(job: Job, walkId: number): void
}

const OF_JOB = 'organization_id = :organization AND collection = :collection'

export function createJobStore(connection: Connection): JobStore {
  const findState = connection.prepare(`
    SELECT
      rows,
      removals_held AS held,
      judged_walk AS judgedWalk,
      scope_path IS NOT :path OR scope_filters IS NOT :filters AS isOtherScope,
      scope_mixed AS isMixed
    FROM sync_jobs
    WHERE ${OF_JOB}
  `)
  const update = (change: string, where = '') =>
    connection.prepare(`UPDATE sync_jobs SET ${change} WHERE ${OF_JOB}${where}`)
  const addRows = update('rows = rows + :rows')
  const addHeld = update('removals_held = removals_held + :rows')
  const holdFor = update('held_why = :why')
  const findHeld = connection.prepare(`
    SELECT removals_held AS rows, rows AS live, held_why AS why FROM sync_jobs WHERE ${OF_JOB} AND removals_held > 0
  `)
  const begin = update('scope_path = :path, scope_filters = :filters', ' AND scope_path IS NULL')
  const mix = update(
    'scope_mixed = 1',
    ' AND scope_mixed = 0 AND (scope_path <> :path OR scope_filters <> :filters)',
  )
  const judge = update('judged_walk = :walk')
  // Pages of another list that were written while the walk stood open are as new as the walk.
  const confirm = update(`
    judged_walk = NULL,
    scope_path = :path,
    scope_filters = :filters,
    scope_mixed = scope_mixed AND EXISTS (SELECT 1 FROM sync_seen_since WHERE walk_id = :walk)
  `)
  return {
    state(job) {
      const row = findState.get({ ...nameOf(job), ...scopeOf(job) }) as Record<keyof JobState, number>
      return { ...row, isOtherScope: row.isOtherScope === 1, isMixed: row.isMixed === 1 }
    },
    addRows: (job, rows) => {
      if (rows !== 0) addRows.run({ ...nameOf(job), rows })
    },
    addHeld: (job, rows) => {
      if (rows !== 0) addHeld.run({ ...nameOf(job), rows })
    },
    holdFor: (job, why) => {
      holdFor.run({ ...nameOf(job), why })
    },
    held: (job) => (findHeld.get(nameOf(job)) as HeldRemovals | undefined) ?? null,
    readFrom(job) {
      const list = { ...nameOf(job), ...scopeOf(job) }
      if (begin.run(list).changes === 0) mix.run(list)
    },
    judge: (job, walk) => {
      judge.run({ ...nameOf(job), walk })
    },
    confirm: (job, walk) => {
      confirm.run({ ...nameOf(job), ...scopeOf(job), walk })
    },
  }
}

function nameOf({ organization, collection }: Job) {
  return { organization: organization.id, collection: collection.name }
}

/** The filters of the configuration: those that a backfill puts on top only narrow the list. */
function scopeOf({ collection }: Job) {
  return { path: collection.path, filters: sortedJson(collection.scope ?? collection.filters) }
}
