import { type Report, rawAt } from '../problems.ts'
import { isPostgresAddress } from './postgres-address.ts'

/** What works with a mirror in a file only, and what to use instead. */
const ONLY_FILES = {
  http: 'Remove it, and watch the mirror with "admin-mirror status --check" or "status --json".',
} as const

/** Reports the keys that a mirror on PostgreSQL would not obey: none is ignored in silence. */
export function checkOnlyFiles(raw: unknown, report: Report): void {
  const database = rawAt(raw, ['database'])
  if (typeof database !== 'string' || !isPostgresAddress(database)) return
  for (const [key, advice] of Object.entries(ONLY_FILES)) {
    if (rawAt(raw, [key]) == null) continue
    report([key], `is for a mirror in a file, and database names a PostgreSQL server. ${advice}`, 'key')
  }
}
