import { DuckDBInstance } from '@duckdb/node-api'

/** The rows of a query on Parquet files, which `place` finds by the names that stand in the SQL; times as DuckDB writes them. */
export async function duckdb(place: (name: string) => string, sql: string): Promise<unknown[][]> {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  try {
    await connection.run("SET TimeZone = 'UTC'")
    const inFolder = sql.replaceAll(/'(\w+\.parquet)'/g, (_, name: string) => `'${place(name)}'`)
    const rows = (await connection.runAndReadAll(inFolder)).getRows()
    return rows.map((row) =>
      row.map((value) => (typeof value === 'object' && value !== null ? String(value) : value)),
    )
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}
