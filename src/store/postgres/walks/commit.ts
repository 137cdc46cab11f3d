import { MirrorError } from '../../../errors.ts'
import type { CommitResult, PageChanges } from '../../../sync/store.ts'
import type { Notice } from '../../../sync/types.ts'
import type { TypedRow } from '../../columns/row.ts'
import { savePage, type WrittenPage } from '../../core/commit.ts'
import { jobName } from '../../core/jobs.ts'
import { timeOf } from '../../core/sql.ts'
import { POSTGRES, runRule } from '../driver.ts'
import { assertKnownVersion, LATEST_VERSION } from '../migrations/migrate.ts'
import type { Server } from '../server/server.ts'
import type { Sql } from '../sql.ts'
import type { Collections, OpenCollection } from '../tables/collection.ts'
import type { FittedRow } from '../tables/row-size.ts'

/** Runs a task in a transaction that has locked the job's row. Throws JobError (`BUSY`) if another worker has the job by now. */
export type Owned = <T>(task: (sql: Sql) => Promise<T>) => Promise<T>

export interface Commit {
  /** Writes one page in one transaction, and changes the tables first if it needs that. */
  page(owned: Owned, page: WrittenPage): Promise<CommitResult>
}

const MOST_TRIES = 20

export function createCommit(server: Server, collections: Collections): Commit {
  return {
    async page(owned, page) {
      const { job, changes } = page
      const notices: Notice[] = []
      const wanted = {
        keys: changes.keys.map(({ parts }) => parts),
        items: changes.upserts.map(({ value }) => value),
      }
      for (let tries = 0; tries < MOST_TRIES; tries++) {
        const tables = await collections.open(job)
        const rows = tables.typed(wanted)
        if (!rows) {
          notices.push(...(await collections.fit(job, wanted, timeOf(page.at))).notices)
          continue
        }
        const written = await collections.retrying(job, async (now) =>
          now === tables ? tryToWrite(owned, page, tables, rows) : null,
        )
        if (written !== null)
          return { ...written, notices: [...distinct(notices), ...nulNotice(changes), ...fullNotice(rows)] }
        await assertKnownVersion(server)
        collections.forget(job)
      }
      throw new MirrorError(`${jobName(job)}: other workers change its tables all the time`)
    },
  }
}

/** Whoever changes the tables of a collection waits for those that write to them. */
const AS_KNOWN = `
  SELECT 1
  FROM sync_collections
  WHERE name = $1 AND version = $2 AND EXISTS (SELECT 1 FROM sync_settings WHERE name = 'version' AND value = $3)
  FOR SHARE
`

/** Returns null if nothing was written, since the tables have changed. */
function tryToWrite(
  owned: Owned,
  page: WrittenPage,
  { writer, version }: OpenCollection,
  typed: readonly TypedRow[],
): Promise<Pick<CommitResult, 'newRejects' | 'rowsAdded'> | null> {
  const { job, changes, at } = page
  return owned(async (sql) => {
    const same = await sql.rows(AS_KNOWN, [job.collection.name, version, String(LATEST_VERSION)])
    if (same.length === 0) return null
    await runRule(sql, writer.write({ job, upserts: changes.upserts, typed, at }))
    return runRule(sql, savePage(POSTGRES, page))
  })
}

function distinct(notices: readonly Notice[]): Notice[] {
  return [...new Map(notices.map((notice) => [notice.message, notice])).values()]
}

function fullNotice(rows: readonly FittedRow[]): Notice[] {
  const some = rows.filter(({ leftOut }) => leftOut > 0).length
  if (some === 0) return []
  const message = `${some} of its items have more values than a row of PostgreSQL holds (8 kB): those of their last columns stay in _json only`
  return [{ level: 'warn', message }]
}

/** PostgreSQL's texts hold no NUL. */
function nulNotice({ upserts }: PageChanges): Notice[] {
  const some = upserts.filter(({ text }) => text.includes('\\u0000')).length
  if (some === 0) return []
  const message = `${some} of its items hold a NUL character, which PostgreSQL cannot store: it is kept as \\u0000 in their columns`
  return [{ level: 'info', message }]
}
