import type { Sql } from '../sql.ts'
import type { PostgresAddress } from './address.ts'
import { translate } from './errors.ts'
import type { Cursor, Pool } from './pool.ts'
import type { ReadingOnce } from './server.ts'

/** Runs `task` in a transaction that can only read, on one snapshot, and never again. Throws MirrorError, or what `meaning` says. */
export async function readOnce<T>(
  address: PostgresAddress,
  pool: Pool,
  task: (sql: Sql & Cursor) => Promise<T>,
  { stop, meaning }: ReadingOnce,
): Promise<T> {
  // Errors of statements alone: others, such as that of a closed output, have the same codes as those of the network.
  const told = async <R>(answer: Promise<R>): Promise<R> => {
    try {
      return await answer
    } catch (error) {
      throw translate(address, meaning(error))
    }
  }
  const run = async (sql: Sql & Cursor): Promise<T> => {
    // Without it the server would notice a client that is gone only when it sends rows. Not every system can look.
    await sql.exec("SET client_connection_check_interval = '1s'").catch(() => {})
    await told(sql.exec(BEGIN))
    const result = await task({
      rows: (text, values) => told(sql.rows(text, values)),
      count: (text, values) => told(sql.count(text, values)),
      exec: (text) => told(sql.exec(text)),
      arrays: (text, values) => told(sql.arrays(text, values)),
    })
    // Nothing is to be written, and EXPLAIN ANALYZE would write what it explains in a transaction that can only read, too.
    await told(sql.exec('ROLLBACK'))
    return result
  }
  let isConnected = false
  try {
    return await pool.using((sql) => {
      isConnected = true
      return run(sql)
    }, stop)
  } catch (error) {
    throw isConnected ? error : translate(address, error)
  }
}

/** A reader may take its time with the rows, so the transaction may be idle; and all rows are wanted, not the first ones soon. */
const BEGIN = `
  BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
  SET LOCAL idle_in_transaction_session_timeout = 0;
  SET LOCAL cursor_tuple_fraction = 1
`
