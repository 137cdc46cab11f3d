import type { Sql } from '../sql.ts'

/** The shortest of so many answers says it best. */
const TRIES = 3

/** How far the server's clock is ahead of ours, in milliseconds. */
export async function measureOffset(sql: Pick<Sql, 'rows'>, now: () => number): Promise<number> {
  let best = { took: Number.POSITIVE_INFINITY, offset: 0 }
  for (let count = 0; count < TRIES; count++) {
    const asked = now()
    const [row] = await sql.rows<{ at: number }>(
      'SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 AS at',
    )
    const took = now() - asked
    if (row && took < best.took) best = { took, offset: row.at - asked - took / 2 }
  }
  return Math.round(best.offset)
}
