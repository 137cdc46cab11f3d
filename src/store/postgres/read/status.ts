import type { MirrorSize } from '../../core/overview.ts'
import { jobLines, type StatusRow, statusOf } from '../../core/status.ts'
import { POSTGRES, runRule, type Statements } from '../driver.ts'
import { lockKey } from '../leases.ts'

/** All jobs that `sync_status` shows, by organization and collection. `held`: the numbers of all locks of the database. */
export async function readStatus(
  sql: Statements,
  schema: string,
  held: ReadonlySet<string>,
): Promise<StatusRow[]> {
  const lines = await runRule(sql, jobLines(POSTGRES))
  return lines.map((line) => {
    const { organization_id: organization, collection } = line.row
    // A job with a lock has an owner. Of thousands of jobs few have one, and each name of a lock takes a hash.
    return statusOf(line, line.owner !== null && held.has(String(lockKey(schema, organization, collection))))
  })
}

export async function mirrorSize(sql: Pick<Statements, 'rows'>): Promise<MirrorSize> {
  const [size] = await sql.rows<{ bytes: number }>(`
    SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint AS bytes
    FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
  `)
  return { bytes: size?.bytes ?? 0, walBytes: null, freeBytes: null }
}
