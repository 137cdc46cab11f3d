import { MirrorError } from '../../../errors.ts'
import type { CommitResult, PageChanges } from '../../../sync/store.ts'
import type { Notice } from '../../../sync/types.ts'
import type { TypedRow } from '../../columns/row.ts'
import { type WrittenPage, writePage } from '../../core/commit.ts'
import { asOwner, type JobRow, jobName, type OwnJob } from '../../core/jobs.ts'
import { one, type Rule, timeOf } from '../../core/sql.ts'
import { POSTGRES, runRule } from '../driver.ts'
import { assertKnownVersion, LATEST_VERSION } from '../migrations/migrate.ts'
import type { Server } from '../server/server.ts'
import type { Collections, OpenCollection } from './collection.ts'
import type { FittedRow } from './row-size.ts'

const MOST_TRIES = 20

/** Writes one page in one transaction, and changes the tables first if it needs that. */
export async function commitPage(
  server: Server,
  collections: Collections,
  owner: OwnJob,
  page: WrittenPage,
): Promise<CommitResult> {
  const { job, changes } = page
  const notices: Notice[] = []
  const wanted = {
    keys: changes.keys.map(({ parts }) => parts),
    items: changes.upserts.map(({ value }) => value),
  }
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const tables = await collections.open(job)
    const typed = tables.typed(wanted)
    if (!typed) {
      notices.push(...(await collections.fit(job, wanted, timeOf(page.at))).notices)
      continue
    }
    const begin = () => asOwner(POSTGRES, owner, (row) => writeAsKnown(tables, typed, page, row))
    const written = await collections.retrying(job, async (now) =>
      now === tables ? server.transaction((sql) => runRule(sql, begin())) : null,
    )
    if (written !== null)
      return { ...written, notices: [...distinct(notices), ...nulNotice(changes), ...fullNotice(typed)] }
    await assertKnownVersion(server)
    collections.forget(job)
  }
  throw new MirrorError(`${jobName(job)}: other workers change its tables all the time`)
}

/** Whoever changes the tables of a collection waits for those that write to them. */
const AS_KNOWN = `
  SELECT 1
  FROM sync_collections
  WHERE name = :name AND version = :version
    AND EXISTS (SELECT 1 FROM sync_settings WHERE name = 'version' AND value = :latest)
  FOR SHARE
`

/** Returns null if nothing was written, since the tables have changed. */
function* writeAsKnown(
  { writer, version }: OpenCollection,
  typed: readonly TypedRow[],
  page: WrittenPage,
  row: JobRow,
): Rule<Pick<CommitResult, 'newRejects' | 'rowsAdded'> | null> {
  const { name } = page.job.collection
  const same = yield* one(AS_KNOWN, { name, version, latest: String(LATEST_VERSION) })
  return same === null ? null : yield* writePage(POSTGRES, writer, typed, page, row)
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
