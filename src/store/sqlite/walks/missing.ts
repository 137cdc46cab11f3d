import type { Job } from '../../../sync/types.ts'
import type { Connection } from '../file/open.ts'
import { unplanned } from '../sql.ts'
import type { RemovalReason } from '../tables/collection.ts'

/** A live row that trusted walks did not see. */
export interface MissingLine {
  mark: string
  state: 'missed' | 'due' | 'held'
  /** The first walk that did not see it, and when that was. */
  missedBy: number
  since: string
  reason: RemovalReason
}

/** A trusted walk, as it judges what it did not see. */
export interface Judge {
  walkId: number
  /** The list came in one answer: to be missed once is enough. */
  atOnce: boolean
  /** It read another list than the trusted walk before it did. */
  isOtherScope: boolean
  /** Pages of another list were written since that one. */
  isMixed: boolean
  at: string
}

/** What becomes of a row's line when a trusted walk does not see it. The same walk may judge it any number of times. */
export function missedOnceMore(
  line: MissingLine | undefined,
  mark: string,
  { walkId, atOnce, isOtherScope, isMixed, at }: Judge,
): MissingLine {
  if (!line) {
    const reason = isOtherScope || isMixed ? 'out_of_scope' : 'removed'
    return { mark, state: atOnce ? 'due' : 'missed', missedBy: walkId, since: at, reason }
  }
  if (line.state !== 'missed' || line.missedBy === walkId) return line
  return { ...line, state: 'due', reason: isOtherScope ? 'out_of_scope' : line.reason }
}

/** `sync_missing`, a job's lines at a time. */
export interface MissingStore {
  has(job: Job): boolean
  find(job: Job, mark: string): MissingLine | undefined
  save(job: Job, line: MissingLine): void
  /** Returns in what state the line was. */
  drop(job: Job, mark: string): MissingLine['state'] | undefined
  /** Up to so many marks behind one, in their order; behind '' from the first. */
  marksAfter(job: Job, mark: string, lines: number): string[]
  /** Up to so many of those that are due or held. */
  due(job: Job, lines: number): MissingLine[]
  /** Of those that are due and not held. */
  countDue(job: Job): number
  /** Has up to so many of those that are due be held. Returns how many. */
  hold(job: Job, lines: number): number
  /** Forgets up to so many that a walk missed first, but for those that are held. Returns how many. */
  forget(job: Job, walkId: number, lines: number): number
}

const OF_JOB = `organization_id = ${unplanned('TEXT')} AND collection = ${unplanned('TEXT')}`
const COLUMNS = 'mark, state, missed_by AS missedBy, since, reason'

export function createMissingStore(connection: Connection): MissingStore {
  const has = connection.prepare(`SELECT 1 FROM sync_missing WHERE ${OF_JOB} LIMIT 1`)
  const find = connection.prepare(`SELECT ${COLUMNS} FROM sync_missing WHERE ${OF_JOB} AND mark = ?`)
  const save = connection.prepare(`
    INSERT OR REPLACE INTO sync_missing (organization_id, collection, mark, state, missed_by, since, reason)
    VALUES (?, ?, ?, ?, ?, ?, ?)
  `)
  const drop = connection
    .prepare(`DELETE FROM sync_missing WHERE ${OF_JOB} AND mark = ? RETURNING state`)
    .pluck()
  const marksAfter = connection
    .prepare(`SELECT mark FROM sync_missing WHERE ${OF_JOB} AND mark > ? ORDER BY mark LIMIT ?`)
    .pluck()
  const due = connection.prepare(`
    SELECT ${COLUMNS} FROM sync_missing WHERE ${OF_JOB} AND state IN ('due', 'held') LIMIT ?
  `)
  const countDue = connection
    .prepare(`SELECT count(*) FROM sync_missing WHERE ${OF_JOB} AND state = 'due'`)
    .pluck()
  const hold = connection.prepare(`
    UPDATE sync_missing
    SET state = 'held'
    WHERE ${OF_JOB} AND mark IN (SELECT mark FROM sync_missing WHERE ${OF_JOB} AND state = 'due' LIMIT ?)
  `)
  const forget = connection.prepare(`
    DELETE FROM sync_missing
    WHERE ${OF_JOB} AND mark IN (
      SELECT mark FROM sync_missing WHERE ${OF_JOB} AND state IN ('missed', 'due') AND missed_by = ? LIMIT ?
    )
  `)
  return {
    has: (job) => has.get(...nameOf(job)) !== undefined,
    find: (job, mark) => find.get(...nameOf(job), mark) as MissingLine | undefined,
    save: (job, { mark, state, missedBy, since, reason }) => {
      save.run(...nameOf(job), mark, state, missedBy, since, reason)
    },
    drop: (job, mark) => drop.get(...nameOf(job), mark) as MissingLine['state'] | undefined,
    marksAfter: (job, mark, lines) => marksAfter.all(...nameOf(job), mark, lines) as string[],
    countDue: (job) => countDue.get(...nameOf(job)) as number,
    due: (job, lines) => due.all(...nameOf(job), lines) as MissingLine[],
    hold: (job, lines) => hold.run(...nameOf(job), ...nameOf(job), lines).changes,
    forget: (job, walkId, lines) => forget.run(...nameOf(job), ...nameOf(job), walkId, lines).changes,
  }
}

function nameOf({ organization, collection }: Job): [string, string] {
  return [organization.id, collection.name]
}
