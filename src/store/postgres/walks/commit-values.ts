import type { SavedRefresh } from '../../../sync/refresh/saved.ts'
import type { Lease, LedgerEntry, PageChanges, Run, RunTraffic, Upsert, Walk } from '../../../sync/store.ts'
import type { Checkpoint, Job } from '../../../sync/types.ts'
import type { TableShape } from '../../columns/catalog.ts'
import { sqlitePath } from '../../columns/path.ts'
import type { TypedRow } from '../../columns/row.ts'
import { rowOf } from '../../ledger.ts'
import { LATEST_VERSION } from '../migrations/migrate.ts'
import { storable, storableJson } from '../sql.ts'
import type { OpenCollection } from '../tables/collection.ts'
import { columnsOfKeys } from '../tables/keys.ts'
import { COMMIT_PARAMETERS, type CommitValues } from './commit-parameters.ts'
import { ofJob, scopeOf, timeOf } from './job.ts'
import { savedColumns } from './refreshes.ts'

/** A page that is to be written, of a walk or of a refresh. */
export interface WrittenPage {
  changes: PageChanges
  run: Run
  /** Epoch milliseconds. */
  at: number
  /** Counts the pages of its walk, or of its refresh, from 1 on: none is written twice. */
  ordinal: number
  /** Null: a refresh read it. */
  answer: { walk: Walk; entry: LedgerEntry; newToWalk: number; next: Checkpoint } | null
  /** What the job keeps for the next refresh; null: nothing changes. */
  saved: SavedRefresh | null
}

/** The parameters of the statement that writes a page. */
export function parametersOf(
  lease: Pick<Lease, 'job'> & { epoch: number },
  page: WrittenPage,
  tables: OpenCollection,
  rows: readonly TypedRow[],
): unknown[] {
  const values = {
    ...jobValues(lease.job),
    ...walkValues(page),
    ...rowValues(page, tables, rows),
    epoch: lease.epoch,
  }
  return [
    ...COMMIT_PARAMETERS.map((name) => values[name]),
    ...columnsOfKeys(
      page.changes.upserts.map(({ key }) => key.parts),
      tables.shape,
    ),
  ]
}

function jobValues(job: Job) {
  const [organization, collection] = ofJob(job)
  const [path, filters] = scopeOf(job)
  const keepsHistory = job.collection.history !== false
  return { organization, collection, path, filters, keepsHistory, schemaVersion: String(LATEST_VERSION) }
}

function walkValues({ answer, ordinal, saved, changes, at, run }: WrittenPage) {
  const line = answer && rowOf(answer.entry)
  const ids = changes.keys.map(({ id }) => id)
  return {
    walk: answer?.walk.id ?? null,
    reader: answer?.walk.kind ?? 'refresh',
    run: run.id,
    at: timeOf(at),
    ordinal,
    pass: line?.pass ?? null,
    page: changes.page,
    total: line?.total ?? null,
    why: line?.why ?? null,
    keys: line?.keys ?? null,
    places: line?.places ?? null,
    newToWalk: answer?.newToWalk ?? null,
    nextPage: answer?.next.nextPage ?? null,
    passes: answer?.next.pass ?? null,
    account: answer && checkpointText(answer.next),
    ids,
    refreshedIds: JSON.stringify(ids),
    ...savedColumns(saved),
    ...trafficOf(run.traffic),
  }
}

function rowValues(
  { changes: { items, upserts, rejects } }: WrittenPage,
  { shape, version }: OpenCollection,
  rows: readonly TypedRow[],
): Pick<
  CommitValues,
  | 'tablesVersion'
  | 'items'
  | 'typedRows'
  | 'texts'
  | 'areNew'
  | 'changedFields'
  | 'rejectIds'
  | 'rejectReasons'
  | 'rejectTexts'
> {
  return {
    tablesVersion: version,
    items,
    rejectIds: rejects.map(({ id }) => storable(id)),
    rejectReasons: rejects.map(({ reason }) => storable(reason)),
    rejectTexts: rejects.map(({ text }) => storable(text)),
    typedRows: typedRowsText(shape, upserts, rows),
    texts: upserts.map(({ text }) => storable(text)),
    areNew: upserts.map(({ change }) => change === 'added'),
    changedFields: upserts.map(({ fields = [] }) => JSON.stringify(fields.map(sqlitePath).map(storable))),
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
      line.push([name, jsonValueOf(value, rows[index], name)])
    return Object.fromEntries(line)
  })
  return JSON.stringify(lines)
}

function jsonValueOf(value: unknown, row: TypedRow | undefined, name: string): unknown {
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'string') return value
  const isArray = row?.arrays.some(({ column }) => column === name) === true
  return storable(isArray ? storableJson(value) : value)
}

/** The column `account` of a walk. */
export function checkpointText({ ask, state, addedBehind }: Checkpoint): string {
  return JSON.stringify({ ask, state, addedBehind })
}

/** Also written with each page: a killed run cannot write them later. */
export function trafficOf({ requests, retries, rateLimitHits, rateLimitWaitMs }: RunTraffic): RunTraffic {
  return { requests, retries, rateLimitHits, rateLimitWaitMs: Math.round(rateLimitWaitMs) }
}
