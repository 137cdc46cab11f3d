import { MirrorError } from '../../../errors.ts'
import type { CommitResult, Lease, PageChanges } from '../../../sync/store.ts'
import type { Notice } from '../../../sync/types.ts'
import type { TypedRow } from '../../columns/row.ts'
import { overtaken } from '../leases.ts'
import { assertKnownVersion } from '../migrations/migrate.ts'
import type { Server } from '../server/server.ts'
import type { Collections, OpenCollection } from '../tables/collection.ts'
import type { FittedRow } from '../tables/row-size.ts'
import { commitSql } from './commit-sql.ts'
import { parametersOf, type WrittenPage } from './commit-values.ts'
import { nameOf, OF_JOB, ofJob, timeOf } from './job.ts'

type OwnLease = Pick<Lease, 'job'> & { epoch: number }

export interface Commit {
  /** Writes one page, in one statement. */
  page(lease: OwnLease, page: WrittenPage): Promise<CommitResult>
}

type Counted = Pick<CommitResult, 'rowsAdded'> & { rejects: number }

const MOST_TRIES = 20

export function createCommit(server: Server, collections: Collections): Commit {
  /** New rejects of walks, as far as this process was told of them. */
  const counted = new Map<number, number>()

  /** Returns null if nothing was written, since the tables have changed. */
  async function tryToWrite(
    lease: OwnLease,
    page: WrittenPage,
    tables: OpenCollection,
    rows: readonly TypedRow[],
  ): Promise<Counted | null> {
    const parameters = parametersOf(lease, page, tables, rows)
    const [row] = await server.rows<Counted>(commitSql(tables.shape), parameters)
    return row ?? (await whyNot(lease, page))
  }

  /** Why nothing was written: another worker has the job, the tables have changed, or it was written already. */
  async function whyNot(lease: OwnLease, { run, answer, ordinal }: WrittenPage): Promise<Counted | null> {
    const { job, epoch } = lease
    await assertKnownVersion(server)
    const [row] = await server.rows<Counted & { pages: number | null; epoch: number }>(
      `
        SELECT
          epoch,
          rows_added AS "rowsAdded",
          coalesce((SELECT pages FROM sync_walks WHERE id = $3), (SELECT pages FROM sync_runs WHERE id = $4)) AS pages,
          coalesce((SELECT new_rejects FROM sync_walks WHERE id = $3), 0) AS rejects
        FROM sync_jobs
        WHERE ${OF_JOB}
      `,
      [...ofJob(job), answer?.walk.id ?? null, run.id],
    )
    if (row?.epoch !== epoch) throw overtaken(nameOf(job))
    // The connection broke after the page was written and before the answer came.
    if (row.pages === ordinal) return { ...row, rejects: row.rejects - rejectsBefore(answer) }
    collections.forget(job)
    return null
  }

  function rejectsBefore(answer: WrittenPage['answer']): number {
    return answer ? (counted.get(answer.walk.id) ?? answer.walk.newRejects) : 0
  }

  return {
    async page(lease, page) {
      const { job } = lease
      const { changes, answer } = page
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
          now === tables ? tryToWrite(lease, page, tables, rows) : null,
        )
        if (written === null) continue
        if (answer) counted.set(answer.walk.id, rejectsBefore(answer) + written.rejects)
        const { rejects: newRejects, rowsAdded } = written
        return {
          newRejects,
          rowsAdded,
          notices: [...distinct(notices), ...nulNotice(changes), ...fullNotice(rows)],
        }
      }
      throw new MirrorError(`${nameOf(job)}: other workers change its tables all the time`)
    },
  }
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
