import { quoted } from '../../core/sql.ts'
import { jobLines, type StatusRow, statusOf } from '../../core/status.ts'
import { POSTGRES, runRule, type Statements } from '../driver.ts'
import { queueSchema } from '../queue/schema.ts'
import type { Sql } from '../server/pool.ts'

/** All jobs that `sync_status` shows, by organization and collection. */
export async function jobsOnServer(sql: Statements, living: ReadonlySet<string>): Promise<StatusRow[]> {
  const lines = await runRule(sql, jobLines(POSTGRES))
  return lines.map((line) => statusOf(line, line.owner !== null && living.has(line.owner)))
}

/** What waits for the workers. */
export interface QueueDepth {
  /** Lists that no worker has taken yet. */
  waiting: number
  /** How long the first of them could have been taken, in milliseconds; null if none waits. */
  oldest_ms: number | null
  /** Lists that workers have taken. */
  running: number
  /** Runs of the last hour that failed. */
  failed: number
}

/** Returns null if no `start` has made the queue yet, or this role may not read it. */
export async function readQueue(sql: Pick<Sql, 'rows'>, schema: string): Promise<QueueDepth | null> {
  const table = `${quoted(queueSchema(schema))}.job`
  const [found] = await sql.rows<{ readable: boolean | null }>(
    `
      SELECT has_schema_privilege(oid, 'USAGE') AND has_table_privilege(to_regclass($2)::oid, 'SELECT') AS readable
      FROM pg_namespace
      WHERE nspname = $1
    `,
    [queueSchema(schema), table],
  )
  if (found?.readable !== true) return null
  const [depth] = await sql.rows<QueueDepth>(`
    SELECT
      count(*) FILTER (WHERE state < 'active') AS waiting,
      greatest(0, (extract(epoch FROM now() - min(start_after) FILTER (WHERE state < 'active')) * 1000)::bigint) AS oldest_ms,
      count(*) FILTER (WHERE state = 'active') AS running,
      count(*) FILTER (
        WHERE (state = 'failed' OR (state = 'completed' AND output ? 'error_code')) AND completed_on > now() - interval '1 hour'
      ) AS failed
    FROM ${table}
  `)
  if (!depth) return null
  return depth.waiting === 0 ? { ...depth, oldest_ms: null } : depth
}
