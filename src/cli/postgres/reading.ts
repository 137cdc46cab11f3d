import { distinctNames, type Value } from '../../store/core/reading.ts'
import { runRule, type Statements } from '../../store/postgres/driver.ts'
import { holdsMirror } from '../../store/postgres/migrate.ts'
import {
  isUnknownName,
  meaningOfSql,
  openCursor,
  type StreamedRows,
  type UserStatement,
  withPlaceholders,
} from '../../store/postgres/read/query.ts'
import type { Cursor } from '../../store/postgres/server/pool.ts'
import type { Server } from '../../store/postgres/server/server.ts'
import { noMirror } from '../mirror.ts'
import { assertExport, type ReadableMirror, type ReadingTask, writeResult } from '../reading.ts'
import type { Runtime } from '../runtime.ts'
import { connect } from './connect.ts'

/**
 * Does the task on one snapshot, in a transaction that can only read, even if the role may write. Throws UsageError and
 * MirrorError.
 */
export async function readOnServer(runtime: Runtime, task: ReadingTask): Promise<void> {
  const { work, config } = task
  const names = work.kind === 'query' ? withPlaceholders(work.sql, new Map(work.parameters)).names : []
  const meaning = (error: unknown) => meaningOfSql(error, names)
  const { signal: stop } = runtime
  const report = (message: string) => runtime.stderr.write(`${message}\n`)
  const server = await connect(config?.postgres, runtime, report, 'reading')
  try {
    if (!(await holdsMirror(server))) {
      await assertUsage(server, task, stop)
      throw noMirror(task.database)
    }
    const read = (sql: Statements & Cursor) => writeResult(runtime, readableServer(sql), task)
    await server.readingOnce(read, { stop, meaning })
  } finally {
    await server.close()
  }
}

/** Usage is checked before it is said that there is no mirror yet. Throws UsageError, also for SQL that is wrong in any mirror. */
async function assertUsage(
  server: Server,
  { work, database, config }: ReadingTask,
  stop: AbortSignal,
): Promise<void> {
  if (work.kind === 'query') {
    const statement = withPlaceholders(work.sql, new Map(work.parameters))
    const meaning = (error: unknown) =>
      isUnknownName(error) ? noMirror(database) : meaningOfSql(error, statement.names)
    await server.readingOnce((sql) => run(sql, statement), { stop, meaning })
    return
  }
  if (config) assertExport(work, config)
}

/** Of a mirror on a PostgreSQL server, in one transaction. */
function readableServer(sql: Statements & Cursor): ReadableMirror {
  return {
    async query(text, parameters) {
      const { columns, ...rest } = await run(sql, withPlaceholders(text, new Map(parameters)))
      return { columns: distinctNames(columns), ...rest }
    },
    ask: (rule) => runRule(sql, rule),
  }
}

/** The server takes a SELECT, WITH, VALUES or TABLE for a cursor, and nothing else; a plan needs none. */
async function run(sql: Cursor, { text, values }: UserStatement): Promise<StreamedRows> {
  if (!/^\s*(?:EXPLAIN|SHOW)\b/i.test(text)) return openCursor(sql, text, values)
  const { rows, ...head } = await sql.arrays(text, values)
  return { ...head, batches: onlyOne(rows as Value[][]) }
}

async function* onlyOne<T>(value: T): AsyncIterable<T> {
  yield await Promise.resolve(value)
}
