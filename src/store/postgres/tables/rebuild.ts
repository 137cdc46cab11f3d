import { InterruptedError, MirrorError } from '../../../errors.ts'
import { parseExact } from '../../../json/exact.ts'
import { isJsonObject, type JsonObject } from '../../../json/value.ts'
import type { Job } from '../../../sync/types.ts'
import { splitKey, type TableShape } from '../../columns/catalog.ts'
import { countColumns, countedJobs } from '../../core/column-counts.ts'
import { type JobNames, OF_JOB } from '../../core/jobs.ts'
import { keyTexts } from '../../core/lookup.ts'
import { takeSeq } from '../../core/seq.ts'
import { one, type Rule, timeOf } from '../../core/sql.ts'
import type { Rebuilt } from '../../sqlite/tables/rebuild.ts'
import { POSTGRES, runRule } from '../driver.ts'
import type { Server } from '../server/server.ts'
import { quoted, type Sql } from '../sql.ts'
import { type Collections, createCollections } from './collection.ts'
import { isTaken, replaceView, type WantedItems } from './fit.ts'
import { findCollection, loadViews } from './records.ts'
import { keyNames, SQL_TYPES, tableName } from './shape.ts'

/** Rows of one batch: some tens of milliseconds. */
const MOST_ROWS = 500

/** The names of the mirror's collections. */
export async function collectionNames(sql: Pick<Sql, 'rows'>): Promise<string[]> {
  const rows = await sql.rows<{ name: string }>('SELECT name FROM sync_collections ORDER BY name')
  return rows.map(({ name }) => name)
}

interface RebuildOptions {
  now: () => number
  signal: AbortSignal
}

/**
 * Writes the typed row of every raw one, deletes those without one, and makes the views again. Each batch is one
 * transaction, so a sync may run meanwhile, and a kill leaves each row old or new. Throws InterruptedError after the signal.
 */
export async function rebuildCollection(
  server: Server,
  name: string,
  { now, signal }: RebuildOptions,
): Promise<Rebuilt> {
  const record = await findCollection(server, name)
  if (!record) throw new MirrorError(`the mirror has no collection ${name}`)
  const collections = createCollections(server)
  const job = { organization: { id: '', name: '' }, collection: { name, key: record.key } } as Job
  const notices = new Set<string>()
  let rows = 0
  for (let last: Position | null = null; ; ) {
    if (signal.aborted)
      throw new InterruptedError('stopped before everything was rebuilt; the same command does the rest')
    const { lines, missing } = await restoreBatch(server, collections, job, last)
    if (missing) {
      const at = new Date(now()).toISOString()
      for (const { message } of (await collections.fit(job, missing, at)).notices) notices.add(message)
      continue
    }
    rows += lines.length
    last = lines.at(-1) ?? null
    if (lines.length < MOST_ROWS) break
  }
  const keyColumns = keyNames(splitKey(record.key))
  const same = ['_organization_id', ...keyColumns].map(
    (column) => `raw.${quoted(column)} = typed.${quoted(column)}`,
  )
  const strays = await server.rows(`
    DELETE FROM ${quoted(name)} AS typed
    WHERE NOT EXISTS (SELECT 1 FROM ${quoted(tableName(name, 'raw'))} AS raw WHERE ${same.join(' AND ')})
    RETURNING 1
  `)
  const views = await server.transaction(async (sql) => {
    let replaced = 0
    for (const view of (await loadViews(sql, name)).values()) {
      if (await isTaken(sql, view.name)) continue
      await replaceView(sql, name, keyColumns, view)
      replaced++
    }
    return replaced
  })
  await recount(server, name)
  for (const names of await runRule(server, countedJobs(name)))
    await server.transaction((sql) => runRule(sql, recounted(names)))
  // No event, but the published file is made again where the last number is another one.
  await runRule(server, takeSeq(name, timeOf(now())))
  return { rows, strays: strays.length, views, notices: [...notices] }
}

/** While the job's row is locked nobody else writes its rows, or counts them. */
function* recounted(job: JobNames): Rule<void> {
  yield* one(`SELECT 1 FROM sync_jobs WHERE ${OF_JOB} FOR NO KEY UPDATE`, job)
  yield* countColumns(POSTGRES, job)
}

interface Position {
  organization: string
  key: readonly string[]
}

interface RawLine extends Position {
  json: string
}

interface Restored {
  lines: RawLine[]
  /** The items for which the columns have to be extended first; null: the rows are written. */
  missing: WantedItems | null
}

function restoreBatch(
  server: Server,
  collections: Collections,
  job: Job,
  last: Position | null,
): Promise<Restored> {
  return collections.retrying(job, (tables) =>
    server.transaction(async (sql) => {
      const { shape } = tables
      const lines = await readRaw(sql, shape, last)
      const wanted = { keys: [], items: lines.map(({ json }) => itemOf(shape.name, json)) }
      const rows = tables.typed(wanted)
      if (!rows) return { lines, missing: wanted }
      const typed = lines.flatMap(({ organization, key }, index) => {
        const row = rows[index]
        return row ? [{ organization, key: key.map((text) => ({ text, integer: false })), typed: row }] : []
      })
      await runRule(sql, tables.writer.writeTyped(typed))
      return { lines, missing: null }
    }),
  )
}

/** Nobody changes these rows before the typed ones are written. */
async function readRaw(sql: Sql, shape: TableShape, last: Position | null): Promise<RawLine[]> {
  const keys = shape.keyColumns.map(quoted)
  const after = shape.keyTypes.map((type, index) => `$${index + 2}::text::${SQL_TYPES[type]}`)
  const parts = keys.map((_, index) => `k${index}`)
  const rows = await sql.rows<Record<string, string>>(
    `
      SELECT "_organization_id" AS organization, "_json" AS json, ${keyTexts(shape.keyColumns)}
      FROM ${quoted(tableName(shape.name, 'raw'))}
      ${last ? `WHERE ("_organization_id", ${keys.join(', ')}) > ($1, ${after.join(', ')})` : ''}
      ORDER BY "_organization_id", ${keys.join(', ')}
      LIMIT ${MOST_ROWS}
      FOR SHARE
    `,
    last ? [last.organization, ...last.key] : [],
  )
  return rows.map((row) => ({
    organization: String(row.organization),
    key: parts.map((part) => String(row[part])),
    json: String(row.json),
  }))
}

function itemOf(name: string, json: string): JsonObject {
  const item = parseExact(json)
  if (isJsonObject(item)) return item
  throw new MirrorError(`${name}_raw holds a row that is no JSON object`)
}

async function recount(server: Server, name: string): Promise<void> {
  await server.rows(
    `
      UPDATE sync_jobs
      SET rows = (
        SELECT count(*) FROM ${quoted(tableName(name, 'raw'))} WHERE "_organization_id" = sync_jobs.organization_id
      )
      WHERE collection = $1
    `,
    [name],
  )
}
