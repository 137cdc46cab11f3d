import { MirrorError } from '../../../errors.ts'
import type {
  CommitResult,
  CommittedAnswer,
  LedgerEntry,
  PageCommit,
  RunTraffic,
  Upsert,
} from '../../../sync/store.ts'
import type { Checkpoint, Job, Notice } from '../../../sync/types.ts'
import type { TypedRow } from '../../columns/row.ts'
import { overtaken } from '../leases.ts'
import { assertKnownVersion, LATEST_VERSION } from '../migrations/migrate.ts'
import type { Server } from '../server/server.ts'
import { storable, storableJson } from '../sql.ts'
import type { Collections, OpenCollection } from '../tables/collection.ts'
import { columnsOfKeys } from '../tables/keys.ts'
import type { TableShape } from '../tables/shape.ts'
import { COMMIT_PARAMETERS, type CommitValues, commitSql } from './commit-sql.ts'
import { nameOf, OF_JOB, ofJob, scopeOf } from './job.ts'

export interface Commit {
  /** Writes one answer, in one statement. */
  answer(job: Job, epoch: number, page: AnswerCommit, at: string): Promise<CommitResult>
  /** Saves a checkpoint without an answer. */
  checkpoint(job: Job, epoch: number, walkId: number, next: Checkpoint, at: string): Promise<void>
}

export type AnswerCommit = PageCommit & { answer: CommittedAnswer }

const MOST_TRIES = 20

export function createCommit(server: Server, collections: Collections): Commit {
  /** The rejects that open walks counted as new: what an answer added that was written, and not confirmed. */
  const counted = new Map<number, number>()

  async function tryToWrite(
    job: Job,
    epoch: number,
    page: AnswerCommit,
    { tables, rows, at }: { tables: OpenCollection; rows: readonly TypedRow[]; at: string },
  ): Promise<number | null> {
    const values = valuesOf(job, epoch, page, { tables, rows, at })
    const parameters = [
      ...COMMIT_PARAMETERS.map((name) => values[name]),
      ...columnsOfKeys(
        page.answer.upserts.map(({ key }) => key.parts),
        tables.shape,
      ),
    ]
    const [row] = await server.rows<{ rejects: number }>(commitSql(tables.shape), parameters)
    return row ? row.rejects : whyNot(job, epoch, page)
  }

  /** Why nothing was written: returns null to try again with the tables as they are now. */
  async function whyNot(job: Job, epoch: number, { walk, answer }: AnswerCommit): Promise<number | null> {
    await assertKnownVersion(server)
    const [row] = await server.rows<{ pages: number; rejects: number; epoch: number }>(
      `
        SELECT pages, new_rejects AS rejects, job.epoch
        FROM sync_jobs AS job
        LEFT JOIN sync_walks ON sync_walks.id = $3
        WHERE job.${OF_JOB.replace('AND ', 'AND job.')}
      `,
      [...ofJob(job), walk.id],
    )
    if (row?.epoch !== epoch) throw overtaken(nameOf(job))
    // The connection broke after the page was written and before the answer came.
    if (row.pages === answer.entry.ordinal) return row.rejects - (counted.get(walk.id) ?? walk.newRejects)
    collections.forget(job)
    return null
  }

  return {
    async answer(job, epoch, page, at) {
      const { walk, answer } = page
      const notices: Notice[] = []
      const wanted = {
        keys: answer.keys.map(({ parts }) => parts),
        items: answer.upserts.map(({ value }) => value),
      }
      for (let tries = 0; tries < MOST_TRIES; tries++) {
        const tables = await collections.open(job)
        const rows = tables.typed(wanted)
        if (!rows) {
          notices.push(...(await collections.fit(job, wanted, at)).notices)
          continue
        }
        const newRejects = await collections.retrying(job, async (now) =>
          now === tables ? tryToWrite(job, epoch, page, { tables, rows, at }) : null,
        )
        if (newRejects === null) continue
        counted.set(walk.id, (counted.get(walk.id) ?? walk.newRejects) + newRejects)
        return { newRejects, notices: [...distinct(notices), ...nulNotice(answer)] }
      }
      throw new MirrorError(`${nameOf(job)}: other workers change its tables all the time`)
    },
    async checkpoint(job, epoch, walkId, next, at) {
      const rows = await server.rows(
        `
          UPDATE sync_walks
          SET next_page = $4, passes = $5, account = $6, updated_at = $7
          WHERE id = $8 AND EXISTS (SELECT 1 FROM sync_jobs WHERE ${OF_JOB} AND epoch = $3 FOR NO KEY UPDATE)
          RETURNING 1
        `,
        [...ofJob(job), epoch, next.nextPage, next.pass, checkpointText(next), at, walkId],
      )
      if (rows.length === 0) throw overtaken(nameOf(job))
    },
  }
}

interface Written {
  tables: OpenCollection
  rows: readonly TypedRow[]
  at: string
}

function valuesOf(
  job: Job,
  epoch: number,
  { walk, run, answer, next }: AnswerCommit,
  written: Written,
): CommitValues {
  const { entry, upserts, rejects } = answer
  const [organization, collection] = ofJob(job)
  const [path, filters] = scopeOf(job)
  return {
    organization,
    collection,
    epoch,
    schemaVersion: String(LATEST_VERSION),
    tablesVersion: written.tables.version,
    walk: walk.id,
    run: run.id,
    at: written.at,
    ordinal: entry.ordinal,
    pass: entry.pass,
    page: entry.page,
    total: entry.total,
    why: entry.why,
    keys: JSON.stringify(entry.ids),
    places: placesText(entry),
    ids: answer.keys.map(({ id }) => id),
    items: answer.items,
    newToWalk: answer.newToWalk,
    nextPage: next.nextPage,
    passes: next.pass,
    account: checkpointText(next),
    ...trafficOf(run.traffic),
    path,
    filters,
    keepsHistory: job.collection.history !== false,
    rejectIds: rejects.map(({ id }) => storable(id)),
    rejectReasons: rejects.map(({ reason }) => storable(reason)),
    rejectTexts: rejects.map(({ text }) => storable(text)),
    typedRows: typedRowsText(written.tables.shape, upserts, written.rows),
    texts: upserts.map(({ text }) => storable(text)),
    areNew: upserts.map(({ change }) => change === 'added'),
  }
}

/** The typed rows as JSON, from which PostgreSQL makes the values of its own types; `organizations`: beside them. */
export function typedRowsText(
  { keyColumns }: Pick<TableShape, 'keyColumns'>,
  upserts: readonly Pick<Upsert, 'key'>[],
  rows: readonly TypedRow[],
  organizations: readonly string[] = [],
): string {
  const lines = upserts.map(({ key }, index) => {
    const line: [string, unknown][] = keyColumns.map((name, part) => [name, key.parts[part]?.text])
    if (organizations[index] !== undefined) line.push(['_organization_id', organizations[index]])
    for (const [name, value] of rows[index]?.values ?? [])
      line.push([name, valueOf(value, rows[index], name)])
    return Object.fromEntries(line)
  })
  return JSON.stringify(lines)
}

function valueOf(value: unknown, row: TypedRow | undefined, name: string): unknown {
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'string') return value
  const isArray = row?.arrays.some(({ column }) => column === name) === true
  return storable(isArray ? storableJson(value) : value)
}

function placesText({ positions }: LedgerEntry): string | null {
  if (positions === null) return null
  return JSON.stringify(positions.map((at) => at && [at.segment, at.position]))
}

/** The column `account` of a walk. */
export function checkpointText({ ask, state }: Checkpoint): string {
  return JSON.stringify({ ask, state })
}

/** Also written with each page: a killed run cannot write them later. */
export function trafficOf({ requests, retries, rateLimitHits, rateLimitWaitMs }: RunTraffic): RunTraffic {
  return { requests, retries, rateLimitHits, rateLimitWaitMs: Math.round(rateLimitWaitMs) }
}

function distinct(notices: readonly Notice[]): Notice[] {
  return [...new Map(notices.map((notice) => [notice.message, notice])).values()]
}

/** PostgreSQL's texts hold no NUL. */
function nulNotice({ upserts }: CommittedAnswer): Notice[] {
  const some = upserts.filter(({ text }) => text.includes('\\u0000')).length
  if (some === 0) return []
  const message = `${some} of its items hold a NUL character, which PostgreSQL cannot store: it is kept as \\u0000 in their columns`
  return [{ level: 'info', message }]
}
