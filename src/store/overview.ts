// What the status page shows of either store, beside `status`.

/** The last runs of a job. */
export interface LastRuns {
  organization_id: string
  collection: string
  /** Of RUN_MARK, the latest run first. */
  marks: string
  /** How long the last walk that ended took, and the last refresh; null if none has. */
  seconds: number | null
  refresh_seconds: number | null
}

/** Runs that are shown of a job. */
export const MOST_RUNS = 30

const LETTER = `
  CASE
    WHEN status = 'failed' THEN 'f'
    WHEN status = 'running' THEN 'r'
    WHEN status = 'interrupted' THEN 'i'
    WHEN error_code IS NOT NULL THEN 'h'
    ELSE 's'
  END`

/**
 * A letter for each run of `sync_runs`: `s` succeeded, `h` succeeded with removals held back, `f` failed, `i` interrupted, `r`
 * running; a capital one for a refresh.
 */
export const RUN_MARK = `CASE trigger WHEN 'refresh' THEN upper(${LETTER}) ELSE ${LETTER} END`

/** A column that came after the first walk of its collection. */
export interface NewColumn {
  collection: string
  column: string
  path: string
  type: string
  first_seen_at: string
}

/** New columns that are shown. */
export const MOST_COLUMNS = 100

/** What a budget is known to allow; `known` as `api/rate` stores it. */
export interface StoredGate {
  scope: string
  known: string | null
}

export interface MirrorSize {
  bytes: number
  /** Null: the mirror is no file. */
  walBytes: number | null
  /** That this user may use on the mirror's disk; null if the system does not say. */
  freeBytes: number | null
}
