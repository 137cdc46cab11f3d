import { createHash } from 'node:crypto'
import { all, type Rule, type StoredTime, timeOrNull } from './sql.ts'

// What of a mirror its published file shows, in few words: so whether the file still shows it is known without a look at the rows.

/** How fresh a list is. Times are ISO 8601; null where the mirror does not know. */
export interface JobFreshness {
  organization_id: string
  organization: string
  collection: string
  as_of: string | null
  last_complete_at: string | null
  fresh_as_of: string | null
}

export interface MirrorState {
  /** A hash of rows, history, columns and coverage: equal where they are, as long as the mirror is one. */
  contents: string
  /** Of every job, in order. */
  jobs: JobFreshness[]
}

/** Each reads what stands for a part of the contents. */
const PARTS = {
  // The greatest number of an event: rows and history do not change without one.
  events: 'SELECT collection, seq FROM sync_seq ORDER BY collection',
  organizations: 'SELECT id, name, configured FROM organizations ORDER BY id',
  columns:
    'SELECT collection, "column", type, filled, misfits FROM sync_columns ORDER BY collection, "column"',
  rejects: 'SELECT count(*) AS rejects FROM sync_rejects',
}

const JOBS = `
  SELECT organization_id, organization, collection, rows, coverage, expected_missed, removals_held, as_of, last_complete_at, fresh_as_of
  FROM sync_status
  ORDER BY organization_id, collection
`

/** Times as the store has them. */
type JobLine = Omit<JobFreshness, Time> & Record<Time, StoredTime | null>
type Time = (typeof TIMES)[number]
const TIMES = ['as_of', 'last_complete_at', 'fresh_as_of'] as const

/** Reads the state, all of one snapshot. `maker`: what else the file depends on: which mirror it is, and which version of the program makes it. */
export function* mirrorState(maker: unknown): Rule<MirrorState> {
  const lines: Record<string, unknown[]> = {}
  for (const [name, text] of Object.entries(PARTS)) lines[name] = yield* all(text)
  const jobs = yield* all<JobLine>(JOBS)
  const freshness = jobs.map(({ organization_id, organization, collection, ...times }) => ({
    organization_id,
    organization,
    collection,
    as_of: timeOrNull(times.as_of),
    last_complete_at: timeOrNull(times.last_complete_at),
    fresh_as_of: timeOrNull(times.fresh_as_of),
  }))
  const text = JSON.stringify([maker, lines, jobs], (name, value) =>
    (TIMES as readonly string[]).includes(name) ? undefined : (value as unknown),
  )
  return {
    contents: createHash('sha256').update(text).digest('hex').slice(0, 32),
    jobs: inOrder(freshness),
  }
}

/** The same whatever database has sorted them. */
export function inOrder<T extends Pick<JobFreshness, 'organization' | 'collection'>>(
  jobs: readonly T[],
): T[] {
  const keyOf = ({ organization, collection }: T) => `${organization}\0${collection}`
  return jobs.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))
}
