import { createHash } from 'node:crypto'
import { all, type Rule, type StoredTime, timeOrNull } from './sql.ts'

// A summary of what the published file shows of a mirror, small enough to compare: it tells whether the file is up to date without a look at
// the rows.

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
const CONTENTS = {
  // The greatest number of an event: rows and history do not change without one.
  events: 'SELECT collection, seq FROM sync_seq ORDER BY collection',
  organizations: 'SELECT id, name, configured FROM organizations ORDER BY id',
  columns:
    'SELECT collection, "column", type, filled, misfits FROM sync_columns ORDER BY collection, "column"',
  rejects: 'SELECT count(*) AS rejects FROM sync_rejects',
}

const JOBS = `
  SELECT organization_id, organization, collection, rows, coverage, removals_held, as_of, last_complete_at, fresh_as_of
  FROM sync_status
  ORDER BY organization_id, collection
`

/** A row of `sync_status`, with times as the store has them. */
type FreshnessRow = Omit<JobFreshness, Time> & Record<Time, StoredTime | null>
type Time = (typeof TIMES)[number]
const TIMES = ['as_of', 'last_complete_at', 'fresh_as_of'] as const

/** How fresh lists are by their rows of `sync_status`, in an order that no database decides. Earlier versions had no `fresh_as_of`. */
export function freshnessOf(rows: readonly Partial<FreshnessRow>[]): JobFreshness[] {
  const jobs = rows.map((row) => ({
    organization_id: row.organization_id ?? '',
    organization: row.organization ?? '',
    collection: row.collection ?? '',
    as_of: timeOrNull(row.as_of ?? null),
    last_complete_at: timeOrNull(row.last_complete_at ?? null),
    fresh_as_of: timeOrNull(row.fresh_as_of ?? null),
  }))
  const keyOf = ({ organization, collection }: JobFreshness) => `${organization}\0${collection}`
  return jobs.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))
}

/** Reads the state, all of one snapshot. `maker`: what else the file depends on: which mirror it is, and which version of the program makes it. */
export function* mirrorState(maker: unknown): Rule<MirrorState> {
  const lines: Record<string, unknown[]> = {}
  for (const [name, text] of Object.entries(CONTENTS)) lines[name] = yield* all(text)
  const jobs = yield* all<FreshnessRow>(JOBS)
  const text = JSON.stringify([maker, lines, jobs], (name, value) =>
    (TIMES as readonly string[]).includes(name) ? undefined : (value as unknown),
  )
  return {
    contents: createHash('sha256').update(text).digest('hex').slice(0, 32),
    jobs: freshnessOf(jobs),
  }
}

/** What decides whether the published file is made again. All times are epoch milliseconds. */
export interface Publication {
  mirror: Shown
  /** Of the file and NAME.json beside it; null: there is no file, or what stands beside it is not about it. */
  published: Shown | null
  /** The file that stands there; null: none, or nothing says when it was made. */
  made: Making | null
  /** When NAME.json was written. */
  toldAt: number | null
  /** The last attempt of this process, if it did not succeed. */
  failed: Making | null
}

/** Texts that are equal where what they stand for is. */
export interface Shown {
  /** Rows, history, columns, coverage. */
  contents: string
  freshness: string
}

export interface Making {
  /** When it began. */
  at: number
  tookMs: number
}

/** The file with NAME.json, or NAME.json alone. */
export interface NextPublication {
  what: 'file' | 'numbers'
  at: number
}

/** A file is not made again where only freshness changed, but after this time it is: the `as_of` in it lags behind the mirror's by no more. */
const OLDEST_MS = 86_400_000

/** How often NAME.json is written: it costs next to nothing. */
const NUMBERS_EVERY_MS = 60_000

/** The file is made so seldom that this takes at most a tenth of the time. */
const PARTS_OF_TIME = 10

/**
 * What is written next, and when; null: nothing, until the mirror changes. `every`: the file is made at most once in this many milliseconds;
 * null: at once, for the end of a command. After the clock was set back, times in the future delay nothing.
 */
export function nextPublication(
  { mirror, published, made, toldAt, failed }: Publication,
  every: number | null,
  now: number,
): NextPublication | null {
  const isSame = published?.contents === mirror.contents
  if (isSame && published.freshness === mirror.freshness) return null
  const isYoung = made !== null && made.at <= now && now - made.at < OLDEST_MS
  const what = isSame && isYoung ? 'numbers' : 'file'
  if (every === null) return { what, at: now }
  const after = (making: Making | null) =>
    making === null || making.at > now ? now : making.at + Math.max(every, making.tookMs * PARTS_OF_TIME)
  const told = toldAt === null || toldAt > now ? now : toldAt + Math.min(every, NUMBERS_EVERY_MS)
  return { what, at: Math.max(what === 'file' ? after(made) : told, after(failed)) }
}
