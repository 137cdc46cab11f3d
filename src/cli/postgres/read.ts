import { Readable } from 'node:stream'
import type { Config } from '../../config/config.ts'
import { JobError, MirrorError, UsageError } from '../../errors.ts'
import type { Cursor } from '../../store/postgres/server/pool.ts'
import type { Sql } from '../../store/postgres/sql.ts'
import type { Rows, Value } from '../../store/sqlite/read/rows.ts'
import { printable } from '../../text.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { csvText } from '../output/formats/csv.ts'
import { jsonText, ndjsonText } from '../output/formats/json.ts'
import { tableText } from '../output/formats/table.ts'
import { type OutputFile, writeOutput } from '../output/output-file.ts'
import { chunked, writeAll } from '../output/write-all.ts'
import { screenOf } from '../reading/output.ts'
import type { TimeLimit } from '../reading/run-reading.ts'
import type { QueryWork } from '../reading/task.ts'
import type { Runtime } from '../runtime.ts'
import { openPostgresForReading } from './open.ts'

interface Query extends Pick<QueryWork, 'sql' | 'format' | 'parameters'> {
  output: OutputFile | null
  limit: TimeLimit | null
}

/** `query`: one statement that only reads. Throws UsageError for any other, for wrong SQL, and for parameters. */
export async function queryPostgres(
  config: Config,
  runtime: Runtime,
  { sql: text, format, parameters, output, limit }: Query,
): Promise<number> {
  if (parameters.length > 0)
    throw new UsageError(
      "--param is for a mirror in a file; on PostgreSQL, write the value into the SQL, or use psql with its variables (:'name')",
    )
  const rows = await withReader(config, runtime, output, async (sql) => {
    if (limit) await sql.exec(`SET LOCAL statement_timeout = ${Math.ceil(limit.ms)}`)
    return read(sql, text, limit)
  })
  const { isTerminal, width } = screenOf(runtime, output)
  const texts = {
    table: () => tableText(rows, width),
    json: () => jsonText(rows, isTerminal),
    ndjson: () => ndjsonText(rows, isTerminal),
    csv: () => csvText(rows, { safe: isTerminal }),
  }
  return write(runtime, output, texts[format]())
}

/** On one snapshot, in a transaction that can only read: also of a role that may write. */
export async function withReader<T>(
  config: Config,
  runtime: Runtime,
  output: OutputFile | null,
  task: (sql: Sql & Cursor) => Promise<T>,
): Promise<T> {
  // Only an unfinished file must be deleted after a signal.
  if (!output?.isRegular) {
    // Node tells of a signal in the loop's next turn: one that came before is not lost.
    await runtime.yieldToEventLoop()
    runtime.dieOnSignal()
  }
  const server = await openPostgresForReading(config, runtime)
  if (!server)
    throw new MirrorError(`there is no mirror at ${config.database} yet; "admin-mirror sync" makes it`)
  try {
    return await server.reading(task)
  } finally {
    await server.close()
  }
}

/** Writes the whole result. Returns the exit code. */
export async function write(
  { stdout, stderr, newToken, signal }: Runtime,
  output: OutputFile | null,
  pieces: Iterable<string | Uint8Array>,
): Promise<number> {
  try {
    const bytes = Readable.from(chunked(pieces))
    if (output) await writeOutput(output, bytes, newToken, signal)
    else await writeAll(stdout, bytes)
    return 0
  } catch (error) {
    if (!signal.aborted || !output) throw error
    stderr.write(`stopped; ${output.shown} is as it was\n`)
    return exitCodeOfStop(signal)
  }
}

async function read(sql: Cursor, text: string, limit: TimeLimit | null): Promise<Rows> {
  const { columns, rows } = await sql.arrays(text).catch((error: unknown) => {
    throw wrongSql(error, limit)
  })
  if (columns.length === 0)
    throw new UsageError('query only reads: write one SELECT (or WITH, VALUES, EXPLAIN, SHOW)')
  return { columns: distinctNames(columns), rows: rows as Value[][] }
}

const TIME_OVER = '57014'

/** SQLSTATEs of a statement that is wrong, would write, or asks for what this role may not see. */
function wrongSql(error: unknown, limit: TimeLimit | null): unknown {
  if (!(error instanceof Error) || !('code' in error)) return error
  if (error.code === TIME_OVER && limit)
    return new JobError('TIMEOUT', `not finished after ${limit.typed} (--timeout), so it was stopped`)
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
