import type { Config } from '../../config/config.ts'
import { MirrorError, UsageError } from '../../errors.ts'
import { splitKey } from '../../store/columns/catalog.ts'
import type { Server } from '../../store/postgres/server/server.ts'
import { quoted } from '../../store/postgres/sql.ts'
import { findCollection } from '../../store/postgres/tables/records.ts'
import { keyNames, tableName } from '../../store/postgres/tables/shape.ts'
import type { Rows, Value } from '../../store/sqlite/read/reader.ts'
import { printable } from '../../text.ts'
import type { Runtime } from '../runtime.ts'
import { openPostgresForReading } from './open.ts'

/** Runs one statement that only reads. Throws UsageError for any other, and for wrong SQL. */
export function queryPostgres(config: Config, runtime: Runtime, sql: string): Promise<Rows> {
  return withReader(config, runtime, (server) => read(server, sql))
}

/** The live rows of a collection; with `items` the items as they were sent. Null for a collection without tables. */
export function exportPostgres(
  config: Config,
  runtime: Runtime,
  {
    collection,
    organizationIds,
    items,
  }: { collection: string; organizationIds: string[] | null; items: boolean },
): Promise<Rows | null> {
  return withReader(config, runtime, async (server) => {
    const record = await findCollection(server, collection)
    if (!record) return null
    const ids = organizationIds?.map((id) => `'${id.replaceAll("'", "''")}'`)
    const order = ['_organization_id', ...keyNames(splitKey(record.key))].map(quoted).join(', ')
    return read(
      server,
      `
        SELECT ${items ? '"_json"' : '*'}
        FROM ${quoted(tableName(collection, items ? 'raw' : 'typed'))}
        ${ids ? `WHERE "_organization_id" IN (${ids.join(', ')})` : ''}
        ORDER BY ${order}
      `,
    )
  })
}

async function withReader<T>(
  config: Config,
  runtime: Runtime,
  task: (server: Server) => Promise<T>,
): Promise<T> {
  const server = await openPostgresForReading(config, runtime)
  if (!server)
    throw new MirrorError(`there is no mirror at ${config.database} yet; "admin-mirror sync" makes it`)
  try {
    return await task(server)
  } finally {
    await server.close()
  }
}

/** In a transaction that can only read: also of a role that may write. */
function read(server: Server, text: string): Promise<Rows> {
  return server.reading(async (sql) => {
    const { columns, rows } = await sql.arrays(text).catch((error: unknown) => {
      throw wrongSql(error)
    })
    if (columns.length === 0)
      throw new UsageError('query only reads: write one SELECT (or WITH, VALUES, EXPLAIN, SHOW)')
    return { columns: distinctNames(columns), rows: rows as Value[][] }
  })
}

/** SQLSTATEs of a statement that is wrong, would write, or asks for what this role may not see. */
function wrongSql(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error)) return error
  const isOfSql = /^(?:22|42|0A|25|21)/.test(String(error.code))
  return isOfSql ? new UsageError(`the SQL cannot be run: ${printable(error.message, 500)}`) : error
}

/** `SELECT a.id, b.id` gives two columns one name; an object needs two. */
function distinctNames(names: readonly string[]): string[] {
  const taken = new Set<string>()
  return names.map((name) => {
    let candidate = name
    for (let count = 2; taken.has(candidate); count++) candidate = `${name}_${count}`
    taken.add(candidate)
    return candidate
  })
}
