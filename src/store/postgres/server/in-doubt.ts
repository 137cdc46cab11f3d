import type { Pool } from './pool.ts'

/** The server does not know a transaction of this number: another one has taken over, without it. */
const INVALID = '22023'

/** SQLSTATE of a transaction of which nobody knows yet: it is asked for again, as from a server that is away. */
const UNKNOWN = '08007'

/** Whether a transaction was written whose COMMIT got no answer. Fails as a server that is away while that is not decided. */
export async function wasCommitted(pool: Pick<Pool, 'rows'>, id: string): Promise<boolean> {
  try {
    const [row] = await pool.rows<{ status: string | null }>(
      'SELECT pg_xact_status($1::text::xid8) AS status',
      [id],
    )
    if (row?.status !== 'in progress') return row?.status === 'committed'
  } catch (error) {
    if ((error as { code?: unknown }).code === INVALID) return false
    throw error
  }
  throw Object.assign(new Error('the end of a transaction is not known yet'), { code: UNKNOWN })
}
