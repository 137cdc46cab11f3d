import { InterruptedError } from '../../errors.ts'
import { jobName } from '../../text.ts'
import { jobState, namesOf } from '../core/jobs.ts'
import { forgetSeen, type Judged, noteMissing, noteUnseen } from '../core/missing.ts'
import { exec, one, quoted, type Rule, type Runner, run } from '../core/sql.ts'
import { SQLITE } from './driver.ts'

/** What is gone through in one transaction: some tens of milliseconds. */
const BATCH = { rows: 20_000, pages: 100 }

/** Rows of a table, by their numbers: greater than `from`, up to `to`. */
interface Range {
  from: number
  to: number
}

/**
 * `noteMissing` for a list of many rows, in batches between which the event loop turns: what the walk saw goes into a temporary table, then the
 * rows are compared with that. Only this process works on the job. A kill leaves some rows noted; the walk is open then, and whoever ends it
 * notes the others. Throws InterruptedError after the signal.
 */
export async function noteMissingInBatches(
  { reading, writing, inBatches }: Runner,
  judged: () => Judged,
  batch = BATCH,
): Promise<void> {
  const { job, rule } = judged()
  const { walkId } = rule
  if ((await reading(jobState(job))).rows <= batch.rows) return writing(() => noteMissing(SQLITE, judged()))

  async function inRanges({ from, to }: Range, step: number, work: (range: Range) => Rule<unknown>) {
    let next = from
    const isDone = await inBatches(async () => {
      const range = { from: next, to: Math.min(next + step, to) }
      if (range.to > range.from) await writing(() => work(range))
      next = range.to
      return next >= to
    })
    if (!isDone) throw new InterruptedError(`${jobName(job)}: stopped while missing rows were looked for`)
  }

  const seen = `temp.seen_${walkId}`
  const ids = `SELECT value FROM ${seen}`
  try {
    await writing(() => exec([`CREATE TABLE IF NOT EXISTS ${seen} (value TEXT PRIMARY KEY) WITHOUT ROWID`]))
    await inRanges(
      await reading(rangeOf('sync_pages', 'walk_id = :walkId', { walkId })),
      batch.pages,
      (range) => fill(seen, { ...namesOf(job), walkId, ...range }),
    )
    await writing(function* () {
      yield* run(
        `INSERT OR IGNORE INTO ${seen} SELECT id.value FROM sync_refreshed, json_each(keys) AS id WHERE walk_id = :walkId`,
        { walkId },
      )
      yield* forgetSeen(job, ids)
    })
    const { name } = job.collection
    await inRanges(await reading(rangeOf(name, 'true', {})), batch.rows, (range) =>
      noteUnseen(SQLITE, judged(), ids, range),
    )
  } finally {
    await writing(() => exec([`DROP TABLE IF EXISTS ${seen}`]))
  }
}

/** Adds the ids on these pages, of this walk and of others of the job since its first page. */
function fill(seen: string, values: Record<string, string | number>): Rule<number> {
  return run(
    `
      INSERT OR IGNORE INTO ${seen}
      SELECT id.value
      FROM sync_pages AS page, json_each(page.keys) AS id
      WHERE page._rowid_ > :from AND page._rowid_ <= :to
        AND (
          page.walk_id = :walkId
          OR page.walk_id IN (SELECT id FROM sync_walks WHERE organization_id = :organization AND collection = :collection)
        )
    `,
    values,
  )
}

/** From the first row of which the condition is true to the last row of the table. */
function* rangeOf(table: string, where: string, values: Record<string, number>): Rule<Range> {
  const found = yield* one<Record<keyof Range, number | null>>(
    `SELECT (SELECT min(_rowid_) FROM ${quoted(table)} WHERE ${where}) - 1 AS "from", (SELECT max(_rowid_) FROM ${quoted(table)}) AS "to"`,
    values,
  )
  return { from: found?.from ?? 0, to: found?.from == null ? 0 : (found.to ?? 0) }
}
