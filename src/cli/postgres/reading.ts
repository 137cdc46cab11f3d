import type { Config } from '../../config/config.ts'
import { UsageError } from '../../errors.ts'
import { collectionSummary } from '../../store/core/describe.ts'
import { distinctNames, type Value } from '../../store/core/reading.ts'
import { runRule } from '../../store/postgres/driver.ts'
import { holdsMirror } from '../../store/postgres/migrations/migrate.ts'
import { describeColumns } from '../../store/postgres/read/describe.ts'
import {
  isUnknownName,
  meaningOf,
  meaningOfSql,
  openCursor,
  type Statement,
  type StreamedRows,
  withPlaceholders,
} from '../../store/postgres/read/query.ts'
import {
  collectionsOf,
  findListed,
  listedNames,
  organizationsOf,
  type Reading,
  selectItems,
  selectRows,
} from '../../store/postgres/read/selection.ts'
import type { Server } from '../../store/postgres/server/server.ts'
import { noMirror } from '../file/mirror.ts'
import { assertNameOf } from '../reading/named.ts'
import { type QueryWork, type ReadableMirror, type ReadingTask, written } from '../reading/read.ts'
import type { ReadingOptions, WritePieces } from '../reading/run-reading.ts'
import type { Runtime } from '../runtime.ts'
import { connect } from './connect.ts'

/**
 * Does the task on one snapshot, in a transaction that can only read: also of a role that may write. A signal or the end of
 * the time ends the statement on the server, too. Throws UsageError, MirrorError, and JobError when the time is over.
 */
export async function readOnServer(
  config: Config | null,
  runtime: Runtime,
  { task, limitMs, late }: ReadingOptions,
  write: WritePieces,
): Promise<void> {
  const { work } = task
  const names = work.kind === 'query' ? statementOf(work).names : null
  const meaning = (error: unknown) => (names ? meaningOfSql(error, names) : meaningOf(error))
  const stop = AbortSignal.any([runtime.signal, late])
  const report = (message: string) => runtime.stderr.write(`${message}\n`)
  const server = await connect(config?.postgres, runtime, report, 'reading')
  try {
    if (!(await holdsMirror(server))) {
      await assertUsage(server, task, stop)
      throw noMirror(task.database)
    }
    await server.readingOnce(
      async (sql) => {
        if (limitMs) await sql.exec(`SET LOCAL statement_timeout = ${Math.ceil(limitMs)}`)
        await write(await written(readableServer(sql), task, report))
      },
      { stop, meaning },
    )
  } finally {
    await server.close()
  }
}

/** Usage is checked before it is said that there is no mirror yet. Throws UsageError, also for SQL that is wrong in any mirror. */
async function assertUsage(
  server: Server,
  { work, database, configured }: ReadingTask,
  stop: AbortSignal,
): Promise<void> {
  if (work.kind === 'query') {
    const { text, values, names } = explaining(statementOf(work))
    const meaning = (error: unknown) =>
      isUnknownName(error) ? noMirror(database) : meaningOfSql(error, names)
    await server.readingOnce((sql) => sql.arrays(text, values), { stop, meaning })
    return
  }
  assertNameOf(work, configured)
}

/** Of a mirror on a PostgreSQL server, in one transaction. */
function readableServer(sql: Reading): ReadableMirror {
  return {
    async query(work) {
      const { columns, ...rest } = await run(sql, statementOf(work))
      return { columns: distinctNames(columns), ...rest }
    },
    collections: async () => (await collectionsOf(sql)).map(({ collection }) => collection),
    organizations: () => organizationsOf(sql),
    names: () => listedNames(sql),
    find: (name) => findListed(sql, name),
    rows: (listed, selection) => selectRows(sql, listed, selection),
    items: (listed, selection) => selectItems(sql, listed, selection),
    describe: (listed) => describeColumns(sql, listed),
    summary: (collection) => runRule(sql, collectionSummary(collection)),
  }
}

/** The statement as the server takes it. Throws UsageError if it does not only read, and for parameters that do not match. */
function statementOf({ sql, parameters }: Pick<QueryWork, 'sql' | 'parameters'>): Statement {
  const statement = withPlaceholders(sql, new Map(parameters))
  if (ROWS.includes(statement.firstWord) || NO_CURSOR.includes(statement.firstWord)) return statement
  throw new UsageError('query only reads: write one SELECT (or WITH, VALUES, TABLE, EXPLAIN, SHOW)')
}

/** The statement planned instead of run. */
function explaining(statement: Statement): Statement {
  const isPlan = NO_CURSOR.includes(statement.firstWord)
  return isPlan ? statement : { ...statement, text: `EXPLAIN ${statement.text}` }
}

const ROWS = ['SELECT', 'WITH', 'VALUES', 'TABLE']
const NO_CURSOR = ['EXPLAIN', 'SHOW']

async function run(sql: Reading, { text, values, firstWord }: Statement): Promise<StreamedRows> {
  if (ROWS.includes(firstWord)) return openCursor(sql, text, values)
  const { rows, ...head } = await sql.arrays(text, values)
  return { ...head, batches: onlyOne(rows as Value[][]) }
}

async function* onlyOne<T>(value: T): AsyncIterable<T> {
  yield await Promise.resolve(value)
}
