import { InterruptedError, MirrorError } from '../../../errors.ts'
import { StaleTablesError } from '../server/errors.ts'
import type { Server } from '../server/server.ts'
import { quoted } from '../sql.ts'
import type { MovedTable } from './tables.ts'
import { addRow, type Digest, digestSql, isSame, type MovedColumn, sqlType, textOf } from './values.ts'

/** One statement writes at most so many rows, or somewhat more than so many characters. */
const MOST_ROWS = 2000
const MOST_CHARACTERS = 2_000_000

export interface CopyOptions {
  signal: AbortSignal
  /** Called after each batch, with the rows so far. */
  onRows: (rows: number) => void
}

/** Fills a table of the server with the rows of the file, from the beginning, and compares. Throws MirrorError. */
export async function copyTable(server: Server, table: MovedTable, options: CopyOptions): Promise<Digest> {
  await server.transaction((sql) => sql.exec(`TRUNCATE ${quoted(table.name)}`))
  const insert = insertSql(table)
  const write = (batch: readonly (string | null)[][]) =>
    server.transaction((sql) =>
      sql.rows(
        insert,
        table.columns.map((_, index) => batch.map((texts) => texts[index])),
      ),
    )
  const digest = await goThrough(table, options, write)
  const written = await digestOnServer(server, table)
  if (isSame(digest, written)) return digest
  throw new MirrorError(
    `${table.name} differs from the file after it was copied (${written?.rows ?? 'no'} rows there, ${digest.rows} here): something else writes to that schema. Stop it, and run the same command again`,
  )
}

/** What the table holds in the file. */
export function digestOfFile(table: MovedTable, options: CopyOptions): Promise<Digest> {
  return goThrough(table, options, async () => {})
}

/** What the table holds on the server; null if it has not these columns. */
export function digestOnServer(server: Server, { name, columns }: MovedTable): Promise<Digest | null> {
  return server
    .reading(async (sql) => {
      const [row] = await sql.rows<{ rows: number; sum: string }>(digestSql(name, columns))
      return { rows: row?.rows ?? 0, sum: BigInt(row?.sum ?? 0) }
    })
    .catch((error: unknown) => {
      if (error instanceof StaleTablesError) return null
      throw error
    })
}

async function goThrough(
  { columns, rows }: MovedTable,
  { signal, onRows }: CopyOptions,
  write: (batch: (string | null)[][]) => Promise<unknown>,
): Promise<Digest> {
  const digest = { rows: 0, sum: 0n }
  let batch: (string | null)[][] = []
  let characters = 0
  const flush = async () => {
    if (signal.aborted)
      throw new InterruptedError('stopped; the same command goes on with the tables that are not copied yet')
    if (batch.length > 0) await write(batch)
    onRows(digest.rows)
    batch = []
    characters = 0
  }
  for (const row of rows()) {
    const texts = row.map((value, index) => textOf(value, columns[index]?.type ?? 'text'))
    addRow(digest, texts, columns)
    batch.push(texts)
    for (const text of texts) characters += text?.length ?? 0
    if (batch.length >= MOST_ROWS || characters >= MOST_CHARACTERS) await flush()
  }
  await flush()
  return digest
}

function insertSql({ name, columns }: Pick<MovedTable, 'name' | 'columns'>): string {
  const names = columns.map((column) => quoted(column.name)).join(', ')
  const arrays = columns.map(({ type }: MovedColumn, index) => `$${index + 1}::${sqlType(type)}[]`)
  return `INSERT INTO ${quoted(name)} (${names}) SELECT * FROM unnest(${arrays.join(', ')})`
}
