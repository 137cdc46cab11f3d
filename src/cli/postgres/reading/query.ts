import type { Config } from '../../../config/config.ts'
import { UsageError } from '../../../errors.ts'
import { openCursor, type StreamedRows } from '../../../store/postgres/read/cursor.ts'
import { meaningOfSql } from '../../../store/postgres/read/errors.ts'
import type { Reading } from '../../../store/postgres/read/listed.ts'
import { type Statement, withPlaceholders } from '../../../store/postgres/read/placeholders.ts'
import { distinctNames, type Value } from '../../../store/sqlite/read/rows.ts'
import { formattedAsTheyCome } from '../../output/formats/format.ts'
import type { OutputFile } from '../../output/output-file.ts'
import { screenOf } from '../../reading/output.ts'
import { queryFormat } from '../../reading/query-format.ts'
import type { TimeLimit } from '../../reading/run-reading.ts'
import type { QueryWork } from '../../reading/task.ts'
import type { Runtime } from '../../runtime.ts'
import { readMirror } from './read-mirror.ts'

interface Query extends Pick<QueryWork, 'sql' | 'format' | 'parameters'> {
  output: OutputFile | null
  limit: TimeLimit | null
}

/** `query`: one statement that only reads. Throws UsageError for any other, for wrong SQL, and for parameters that do not match. */
export async function queryPostgres(
  config: Config,
  runtime: Runtime,
  { sql: typed, format, parameters, output, limit }: Query,
): Promise<number> {
  const values = new Map(parameters.map(([name, value]) => [name.replace(/^[:@$]/, ''), value]))
  const statement = withPlaceholders(typed, values)
  const begin = beginningOf(statement)
  const { names } = statement
  const meaning = (error: unknown) => meaningOfSql(error, names)
  return await readMirror(config, runtime, { output, limit, meaning }, async (sql) => {
    const { columns, batches } = await begin(sql)
    const options = { format, ...screenOf(runtime, output) }
    return formattedAsTheyCome(queryFormat(distinctNames(columns), options), batches)
  })
}

/** How the statement is run: the server takes nothing but these. Throws UsageError for others. */
function beginningOf({ text, values, firstWord }: Statement): (sql: Reading) => Promise<StreamedRows> {
  if (['SELECT', 'WITH', 'VALUES', 'TABLE'].includes(firstWord)) return (sql) => openCursor(sql, text, values)
  if (firstWord !== 'EXPLAIN' && firstWord !== 'SHOW')
    throw new UsageError('query only reads: write one SELECT (or WITH, VALUES, TABLE, EXPLAIN, SHOW)')
  return async (sql) => {
    const { columns, rows } = await sql.arrays(text, values)
    return { columns, batches: one(rows as Value[][]) }
  }
}

async function* one<T>(value: T): AsyncIterable<T> {
  yield await Promise.resolve(value)
}
