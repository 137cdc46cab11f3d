import { ownedBy, type StatusRow, statusRows } from '../../core/status.ts'
import { POSTGRES, runRule, type Statements } from '../driver.ts'

/** All lists that `sync_status` shows. `living`: the workers that are alive. */
export async function jobsOnServer(sql: Statements, living: ReadonlySet<string>): Promise<StatusRow[]> {
  const rows = await runRule(sql, statusRows(POSTGRES))
  return rows.map((row) => ownedBy(row, row.owner !== null && living.has(row.owner)))
}
