import { InterruptedError, MirrorError } from '../../../errors.ts'
import { parseExact } from '../../../json/exact.ts'
import { isJsonObject, type JsonObject } from '../../../json/value.ts'
import { keyColumnNames } from '../../columns/catalog.ts'
import { inBatches } from '../batches.ts'
import type { Connection } from '../file/open.ts'
import { createMaintenance } from '../maintenance.ts'
import { quoted } from '../sql.ts'
import type { Patience, Transact } from '../transaction.ts'
import { openCollection } from './collection.ts'
import { knownKey, loadViews } from './column-records.ts'
import { type ArrayView, declarationOf, replaceView, tableName } from './declarations.ts'
import { type Outcome, writeWithRoom } from './room.ts'

/** Makes what analysts query anew from the raw rows. */
export interface Rebuilding {
  /** The collections that the mirror keeps. */
  collections(): string[]
  /**
   * Writes the typed row of every raw one, takes away those that have none, and makes the views anew. Each step reads and
   * writes in one transaction, so a sync may go on meanwhile; killed half-way each row is as it was or as it shall be.
   * Throws InterruptedError when the process is told to stop.
   */
  collection(name: string): Promise<Rebuilt>
}

export interface Rebuilt {
  rows: number
  /** Rows that had no raw one. */
  strays: number
  views: number
  /** What the log would say of new columns, each once. */
  notices: string[]
}

export interface RebuildingOptions extends Patience {
  connection: Connection
  file: string
  transact: Transact
}

/** Rows of one batch: some tens of milliseconds. */
const MOST_ROWS = 500

export function createRebuilding({ connection, file, transact, ...patience }: RebuildingOptions): Rebuilding {
  const time = () => new Date(patience.now()).toISOString()
  const maintain = createMaintenance({ file, ...patience })

  const room = { connection, transact, maintain, time }

  /** What a step has come to counts once it is committed. */
  async function toTheEnd(step: (from: Progress, rows: number) => Promise<Progress>): Promise<number> {
    let progress: Progress = { last: 0, count: 0, isDone: false }
    const isDone = await inBatches(patience, async () => {
      progress = await step(progress, MOST_ROWS)
      return progress.isDone
    })
    if (isDone) return progress.count
    throw new InterruptedError('stopped before everything was made anew; the same command does the rest')
  }

  return {
    collections: () =>
      connection.prepare('SELECT name FROM sync_collections ORDER BY name').pluck().all() as string[],
    async collection(name) {
      if (declarationOf(connection, tableName(name, 'raw')) === undefined)
        throw new MirrorError(`${file} has no table ${tableName(name, 'raw')}, of which ${name} is made`)
      const keyPaths = (knownKey(connection, name) ?? []).map((path) => path.split('.'))
      const restoring = createRestoring(connection, name, keyPaths)
      const clearing = createClearing(connection, name, keyPaths)
      const notices = new Set<string>()
      const rows = await toTheEnd(async (from, most) => {
        const written = await writeWithRoom(room, name, () => restoring.step(from, most))
        for (const { message } of written.notices) notices.add(message)
        return written.result
      })
      const strays = await toTheEnd((from, most) => transact(() => clearing.step(from, most)))
      const views = await transact(() => replaceViews(connection, name, keyPaths))
      await transact(() => recount(connection, name))
      return { rows, strays, views, notices: [...notices] }
    },
  }
}

/** Up to which row id a table was gone through, and how many rows were written or taken away. */
interface Progress {
  last: number
  count: number
  isDone: boolean
}

type KeyPaths = readonly (readonly string[])[]

interface RawLine {
  rowId: number
  organizationId: string
  _json: string
  _first_seen_at: string
  _changed_at: string
}

/** Goes through the raw rows in the order of their row ids, which a key column that becomes TEXT leaves as they are. */
function createRestoring(connection: Connection, name: string, keyPaths: KeyPaths) {
  const columns = keyColumnNames(keyPaths)
  const keys = columns.map((column, index) => `CAST(${quoted(column)} AS TEXT) AS _key_${index}`)

  function read(last: number, rows: number): (RawLine & Record<string, unknown>)[] {
    const sql = `
      SELECT _rowid_ AS "rowId", "_organization_id" AS "organizationId", "_json", "_first_seen_at", "_changed_at", ${keys.join(', ')}
      FROM ${quoted(tableName(name, 'raw'))}
      WHERE _rowid_ > ?
      ORDER BY _rowid_
      LIMIT ?
    `
    return connection.prepare(sql).all(last, rows) as (RawLine & Record<string, unknown>)[]
  }

  function itemOf(json: string): JsonObject {
    const item = parseExact(json)
    if (isJsonObject(item)) return item
    throw new MirrorError(`${name}_raw holds a row that is no JSON object`)
  }

  return {
    step({ last, count }: Progress, rows: number): Outcome<Progress> {
      const lines = read(last, rows)
      const tables = openCollection(connection, name, keyPaths)
      const placement = tables.place(
        [],
        lines.map(({ _json }) => itemOf(_json)),
      )
      if (placement.changes) return placement
      for (const [index, line] of lines.entries()) {
        const typed = placement.rows[index]
        const key = columns.map((_, part) => ({ text: String(line[`_key_${part}`]), integer: false }))
        if (typed) tables.restore(line.organizationId, key, line, typed)
      }
      const notices = [...placement.notices, ...tables.extendViews(placement.rows)]
      const isDone = lines.length < rows
      return { result: { last: lines.at(-1)?.rowId ?? last, count: count + lines.length, isDone }, notices }
    },
  }
}

/** Takes away typed rows that have no raw one. */
function createClearing(connection: Connection, name: string, keyPaths: KeyPaths) {
  const typed = quoted(name)
  const same = ['_organization_id', ...keyColumnNames(keyPaths)]
    .map((column) => `raw.${quoted(column)} = ${typed}.${quoted(column)}`)
    .join(' AND ')
  return {
    step({ last, count }: Progress, rows: number): Progress {
      const end = connection
        .prepare(`SELECT _rowid_ FROM ${typed} WHERE _rowid_ > ? ORDER BY _rowid_ LIMIT 1 OFFSET ?`)
        .pluck()
        .get(last, rows - 1) as number | undefined
      const clear = connection.prepare(`
        DELETE FROM ${typed}
        WHERE _rowid_ > ? AND _rowid_ <= ?
          AND NOT EXISTS (SELECT 1 FROM ${quoted(tableName(name, 'raw'))} AS raw WHERE ${same})
      `)
      const { changes } = clear.run(last, end ?? Number.MAX_SAFE_INTEGER)
      return { last: end ?? last, count: count + changes, isDone: end === undefined }
    },
  }
}

function replaceViews(connection: Connection, name: string, keyPaths: KeyPaths): number {
  const shape = { name, keyColumns: keyColumnNames(keyPaths), keyTypes: [], columns: [] }
  const isOurs = ({ name: view }: ArrayView) => declarationOf(connection, view) === undefined
  const views = [...loadViews(connection, name).values()].filter(isOurs)
  for (const view of views) replaceView(connection, shape, view)
  return views.length
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
