import { InterruptedError, MirrorError } from '../../errors.ts'
import { parseExact } from '../../json/exact.ts'
import { isJsonObject, type JsonObject } from '../../json/value.ts'
import { type KeyType, keyColumnNames, splitKey, tableName } from '../columns/catalog.ts'
import type { TypedRow } from '../columns/row.ts'
import { replaceViews } from './array-views.ts'
import { ensureChangesView } from './collections.ts'
import { countColumns, countedJobs } from './column-counts.ts'
import {
  type Alteration,
  type KnownTables,
  type Outcome,
  type TableAccess,
  typedRows,
  viewedTable,
  writeFitting,
} from './fit.ts'
import { type JobNames, OF_JOB } from './jobs.ts'
import { keyIn, keyTexts, type Position, rowsAfter } from './key-order.ts'
import type { TypedLine } from './rows.ts'
import { takeSeq } from './rows.ts'
import { all, type Dialect, type Keys, one, quoted, type Rule, type Runner, run, timeOf } from './sql.ts'
import { type ConfiguredCollection, knownKey } from './tables.ts'

// `rebuild`: what analysts query is made again from the raw rows.

export interface Rebuilt {
  rows: number
  /** Typed rows without a raw one. */
  strays: number
  views: number
  /** The messages about new columns, each once. */
  notices: string[]
}

/** What a rebuild needs of a database. */
export interface RebuildWork extends Runner, TableAccess {
  alteration: Alteration
}

/** A raw row. */
interface RawLine {
  organization: string
  key: readonly string[]
  item: JsonObject
}

/** Rows of one batch: some tens of milliseconds. */
const REBUILT_AT_ONCE = 500

/**
 * Writes the typed row of every raw one, deletes those without one, and makes the views again. Each batch of rows is one transaction, so a sync may
 * run meanwhile, and a kill leaves each row old or new. Throws InterruptedError after the signal to stop.
 */
export async function rebuildTables(work: RebuildWork, name: string): Promise<Rebuilt> {
  const { alteration, dialect, reading, writing } = work
  const time = () => timeOf(work.now())
  const collection = await reading(collectionOf(dialect, name))
  const notices = new Set<string>()
  let rows = 0
  let last: Position | null = null
  const isDone = await work.inBatches(async () => {
    const { result, notices: found } = await writeFitting(work, collection, time(), (tables) =>
      restoreRows(dialect, tables, last),
    )
    const { lines, types } = result
    for (const { message } of found) notices.add(message)
    rows += lines.length
    const end = lines.length < REBUILT_AT_ONCE ? undefined : lines.at(-1)
    last = end ? { types, last: [end.organization, ...end.key] } : null
    return last === null
  })
  if (!isDone)
    throw new InterruptedError('stopped before everything was rebuilt; the same command does the rest')
  const strays = await writing(() => deleteStrays(dialect, collection))
  const views = await writing(function* () {
    const table = viewedTable(dialect, collection)
    yield* ensureChangesView(alteration, table)
    return yield* replaceViews(alteration, table)
  })
  await writing(() => recount(name))
  for (const job of await reading(countedJobs(name))) await writing(() => countAgain(dialect, job))
  // Taken without an event: the published file is made again when the last number has changed.
  await writing(() => takeSeq(name, time()))
  return { rows, strays, views, notices: [...notices] }
}

function* collectionOf(dialect: Dialect, name: string): Rule<ConfiguredCollection> {
  const [key, raw] = [yield* knownKey(name), tableName(name, 'raw')]
  if (key && (yield* dialect.columnTypes(raw)).size > 0) return { name, key }
  throw new MirrorError(`the mirror has no table ${raw}, from which ${name} is made`)
}

/** Writes the typed rows of the raw ones of a batch. */
function* restoreRows(
  dialect: Dialect,
  tables: KnownTables,
  last: Position | null,
): Rule<Outcome<{ lines: RawLine[]; types: readonly KeyType[] }>> {
  const { shape, writer } = tables
  const lines = yield* readRaw(dialect, shape.name, shape, last)
  const wanted = { keys: [], items: lines.map(({ item }) => item) }
  const rows = typedRows(dialect, tables, wanted)
  if (!rows) return { wanted }
  yield* writer.writeTyped(typedLines(lines, rows))
  return { result: { lines, types: shape.keyTypes } }
}

/** The typed rows of raw ones, to be written. */
function typedLines(lines: readonly RawLine[], rows: readonly TypedRow[]): TypedLine[] {
  return lines.flatMap(({ organization, key }, index) => {
    const typed = rows[index]
    return typed ? [{ organization, key: key.map((text) => ({ text, integer: false })), typed }] : []
  })
}

/** Nobody changes these rows before the typed ones are written. */
function* readRaw({ forShare }: Dialect, name: string, keys: Keys, last: Position | null): Rule<RawLine[]> {
  const { sql, order, values } = rowsAfter(keys, last, ['_organization_id'])
  const rows = yield* all<Record<string, string>>(
    `
      SELECT "_organization_id" AS organization, "_json" AS json, ${keyTexts(keys.keyColumns)}
      FROM ${quoted(tableName(name, 'raw'))}
      WHERE ${sql}
      ORDER BY ${order}
      LIMIT ${REBUILT_AT_ONCE}
      ${forShare}
    `,
    values,
  )
  return rows.map((row) => ({
    organization: row.organization ?? '',
    key: keyIn(row, keys),
    item: itemOf(name, row.json ?? ''),
  }))
}

function itemOf(name: string, json: string): JsonObject {
  const item = parseExact(json)
  if (isJsonObject(item)) return item
  throw new MirrorError(`${name}_raw holds a row that is not a JSON object`)
}

/** Deletes the typed rows that have no raw one. */
function deleteStrays({ limits }: Dialect, { name, key }: ConfiguredCollection): Rule<number> {
  const typed = quoted(name)
  const same = ['_organization_id', ...keyColumnNames(splitKey(key), limits)]
    .map(quoted)
    .map((column) => `raw.${column} = ${typed}.${column}`)
  return run(
    `DELETE FROM ${typed} WHERE NOT EXISTS (SELECT 1 FROM ${quoted(tableName(name, 'raw'))} AS raw WHERE ${same.join(' AND ')})`,
  )
}

function recount(name: string): Rule<number> {
  const raw = quoted(tableName(name, 'raw'))
  return run(
    `
      UPDATE sync_jobs
      SET rows = (SELECT count(*) FROM ${raw} WHERE "_organization_id" = sync_jobs.organization_id)
      WHERE collection = :name
    `,
    { name },
  )
}

/** While the job's row is locked nobody else writes its rows, or counts them. */
function* countAgain(dialect: Dialect, job: JobNames): Rule<void> {
  yield* one(`SELECT 1 FROM sync_jobs WHERE ${OF_JOB} ${dialect.forUpdate}`, job)
  yield* countColumns(dialect, job)
}
