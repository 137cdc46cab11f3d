import { InterruptedError, MirrorError } from '../../../errors.ts'
import { parseExact } from '../../../json/exact.ts'
import { isJsonObject, type JsonObject } from '../../../json/value.ts'
import { type KeyPaths, keyColumnNames, splitKey } from '../../columns/catalog.ts'
import { countColumns, countedJobs } from '../../core/column-counts.ts'
import { takeSeq } from '../../core/seq.ts'
import { runRule, SQLITE } from '../driver.ts'
import { createMaintenance } from '../maintenance.ts'
import { type Connection, quoted } from '../sql.ts'
import { inBatches, type Patience, type Transact } from '../transaction.ts'
import { changeColumnsAndWrite, type Outcome } from './alter.ts'
import { replaceViews } from './array-views.ts'
import { openCollection } from './collection.ts'
import { knownKey } from './column-records.ts'
import { declarationOf, tableName } from './declarations.ts'
import type { StoredTimes } from './rows.ts'

/** Recreates what analysts query from the raw rows. */
export interface TypedTableRebuild {
  /** The names of the mirror's collections. */
  collections(): string[]
  /**
   * Writes the typed row of every raw one, deletes those without one, and recreates the views. Each batch is
   * one transaction, so a sync may run meanwhile, and a kill leaves each row old or new. Throws
   * InterruptedError after the signal to stop.
   */
  collection(name: string): Promise<Rebuilt>
}

export interface Rebuilt {
  rows: number
  /** Typed rows without a raw one. */
  strays: number
  views: number
  /** The messages about new columns, each once. */
  notices: string[]
}

export interface RebuildOptions extends Patience {
  connection: Connection
  file: string
  transact: Transact
}

/** Rows of one batch: some tens of milliseconds. */
const MOST_ROWS = 500

export function createTypedTableRebuild({
  connection,
  file,
  transact,
  ...patience
}: RebuildOptions): TypedTableRebuild {
  const time = () => new Date(patience.now()).toISOString()
  const options = { connection, transact, maintain: createMaintenance({ file, ...patience }), time }

  /** Runs steps until one is done; returns how many rows they wrote or deleted. */
  async function runSteps(step: Step<Promise<Progress>>): Promise<number> {
    let progress: Progress = { last: 0, count: 0, isDone: false }
    const isDone = await inBatches(patience, async () => {
      progress = await step(progress, MOST_ROWS)
      return progress.isDone
    })
    if (isDone) return progress.count
    throw new InterruptedError('stopped before everything was rebuilt; the same command does the rest')
  }

  return {
    collections: () =>
      connection.prepare('SELECT name FROM sync_collections ORDER BY name').pluck().all() as string[],
    async collection(name) {
      if (declarationOf(connection, tableName(name, 'raw')) === undefined)
        throw new MirrorError(`${file} has no table ${tableName(name, 'raw')}, of which ${name} is made`)
      const keyPaths = splitKey(knownKey(connection, name) ?? [])
      const restore = prepareRestore(connection, name, keyPaths, time)
      const clear = prepareClear(connection, name, keyPaths)
      const notices = new Set<string>()
      const rows = await runSteps(async (from, most) => {
        const write = () => restore(from, most)
        const written = await changeColumnsAndWrite(options, name, await transact(write), write)
        for (const { message } of written.notices) notices.add(message)
        return written.result
      })
      const strays = await runSteps((from, most) => transact(() => clear(from, most)))
      const shape = { name, keyColumns: keyColumnNames(keyPaths) }
      const views = await transact(() => replaceViews(connection, shape))
      await transact(() => {
        recount(connection, name)
        for (const job of runRule(connection, countedJobs(name)))
          runRule(connection, countColumns(SQLITE, job))
        // No event, but the published file is made again where the last number is another one.
        runRule(connection, takeSeq(name, time()))
      })
      return { rows, strays, views, notices: [...notices] }
    },
  }
}

interface Progress {
  /** The row id of the last row that was handled. */
  last: number
  /** Rows written or deleted. */
  count: number
  isDone: boolean
}

type Step<T> = (from: Progress, most: number) => T

interface RawLine extends StoredTimes, Record<string, unknown> {
  rowId: number
  organizationId: string
  _json: string
}

/** Writes typed rows in the order of the raw row ids, which stay the same when a key column becomes TEXT. */
function prepareRestore(
  connection: Connection,
  name: string,
  keyPaths: KeyPaths,
  time: () => string,
): Step<Outcome<Progress>> {
  const columns = keyColumnNames(keyPaths)
  const keys = columns.map((column, index) => `CAST(${quoted(column)} AS TEXT) AS _key_${index}`)
  const sql = `
    SELECT _rowid_ AS "rowId", "_organization_id" AS "organizationId", "_json", "_first_seen_at", "_changed_at", ${keys.join(', ')}
    FROM ${quoted(tableName(name, 'raw'))}
    WHERE _rowid_ > ?
    ORDER BY _rowid_
    LIMIT ?
  `

  function itemOf({ _json }: RawLine): JsonObject {
    const item = parseExact(_json)
    if (isJsonObject(item)) return item
    throw new MirrorError(`${name}_raw holds a row that is no JSON object`)
  }

  return ({ last, count }, most) => {
    // Prepared for each batch, since the table may be rebuilt in between.
    const lines = connection.prepare(sql).all(last, most) as RawLine[]
    const tables = openCollection(connection, name, keyPaths)
    const rows = tables.toRows([], lines.map(itemOf))
    if (rows.changes) return rows
    for (const [index, line] of lines.entries()) {
      const typed = rows.result[index]
      const key = columns.map((_, part) => ({ text: String(line[`_key_${part}`]), integer: false }))
      if (typed) tables.restore(line.organizationId, key, line, typed)
    }
    const notices = [...rows.notices, ...tables.extendViews(rows.result, time())]
    const isDone = lines.length < most
    return { result: { last: lines.at(-1)?.rowId ?? last, count: count + lines.length, isDone }, notices }
  }
}

/** Deletes typed rows that have no raw one. */
function prepareClear(connection: Connection, name: string, keyPaths: KeyPaths): Step<Progress> {
  const typed = quoted(name)
  const same = ['_organization_id', ...keyColumnNames(keyPaths)]
    .map((column) => `raw.${quoted(column)} = ${typed}.${quoted(column)}`)
    .join(' AND ')
  return ({ last, count }, most) => {
    const end = connection
      .prepare(`SELECT _rowid_ FROM ${typed} WHERE _rowid_ > ? ORDER BY _rowid_ LIMIT 1 OFFSET ?`)
      .pluck()
      .get(last, most - 1) as number | undefined
    const clear = connection.prepare(`
      DELETE FROM ${typed}
      WHERE _rowid_ > ? AND _rowid_ <= ?
        AND NOT EXISTS (SELECT 1 FROM ${quoted(tableName(name, 'raw'))} AS raw WHERE ${same})
    `)
    const { changes } = clear.run(last, end ?? Number.MAX_SAFE_INTEGER)
    return { last: end ?? last, count: count + changes, isDone: end === undefined }
  }
}

function recount(connection: Connection, name: string): void {
  const raw = quoted(tableName(name, 'raw'))
  connection
    .prepare(`
      UPDATE sync_jobs
      SET rows = (SELECT count(*) FROM ${raw} WHERE "_organization_id" = sync_jobs.organization_id)
      WHERE collection = ?
    `)
    .run(name)
}
