import { translatingErrors } from '../file/open.ts'
import type { Connection } from '../sql.ts'

/** When a job last did what its schedule asks for. Epoch milliseconds. */
export interface LastRuns {
  /** The start of its last complete full walk. */
  completedAt: number | null
  /** The start of its last run by schedule or by hand, however that ended. */
  startedAt: number | null
  /** Whether a sync's walk stands open. */
  unfinished: boolean
}

/** Makes the look at a job's last walks and runs. */
export function createLastRuns(
  connection: Connection,
): (organizationId: string, collection: string) => LastRuns {
  // By their ids, which the indexes end with: asked for by their times, every run of three months would be read.
  const lastComplete = connection
    .prepare(`
      SELECT started_at
      FROM sync_walks
      WHERE organization_id = ? AND collection = ? AND status = 'complete' AND kind = 'full'
      ORDER BY id DESC
      LIMIT 1
    `)
    .pluck()
  const lastRun = connection
    .prepare(`
      SELECT started_at
      FROM sync_runs
      WHERE organization_id = ? AND collection = ? AND trigger IN ('schedule', 'manual')
      ORDER BY id DESC
      LIMIT 1
    `)
    .pluck()
  const openWalk = connection
    .prepare(`
      SELECT 1
      FROM sync_walks
      WHERE organization_id = ? AND collection = ? AND status = 'open' AND origin = 'sync'
    `)
    .pluck()

  return (organizationId, collection) =>
    translatingErrors(connection.name, () => ({
      completedAt: instant(lastComplete.get(organizationId, collection)),
      startedAt: instant(lastRun.get(organizationId, collection)),
      unfinished: openWalk.get(organizationId, collection) !== undefined,
    }))
}

function instant(time: unknown): number | null {
  return typeof time === 'string' ? Date.parse(time) : null
}
