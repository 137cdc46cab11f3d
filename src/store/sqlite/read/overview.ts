import fs from 'node:fs'
import path from 'node:path'
import type { Connection } from '../sql.ts'

/** A run, as a strip of runs shows it. Times as in the mirror. */
export interface RunMark {
  trigger: string
  status: string
  error_code: string | null
  started_at: string
  finished_at: string | null
  rows_added: number
  rows_changed: number
  rows_removed: number
}

/** Latest runs a job that are shown. */
const RUNS = 30

/** The last runs of each job, oldest first, by `jobKey`. */
export function readLastRuns(connection: Connection): Map<string, RunMark[]> {
  const rows = connection.prepare(LAST_RUNS_SQL).raw().all(RUNS) as RunRow[]
  const byJob = new Map<string, RunMark[]>()
  for (const [organization, collection, ...run] of rows.toReversed()) {
    const [trigger, status, error_code, started_at, finished_at, rows_added, rows_changed, rows_removed] = run
    const marks = byJob.get(jobKey(organization, collection)) ?? []
    marks.push({
      trigger,
      status,
      error_code,
      started_at,
      finished_at,
      rows_added,
      rows_changed,
      rows_removed,
    })
    byJob.set(jobKey(organization, collection), marks)
  }
  return byJob
}

type RunRow = [
  organization: string,
  collection: string,
  trigger: string,
  status: string,
  errorCode: string | null,
  startedAt: string,
  finishedAt: string | null,
  added: number,
  changed: number,
  removed: number,
]

/** Names a job in a map. */
export function jobKey(organizationId: string, collection: string): string {
  return `${organizationId} ${collection}`
}

// By the index, 30 lines a job: a window function would read all lines that `keepRuns` keeps.
const LAST_RUNS_SQL = `
  SELECT
    run.organization_id,
    run.collection,
    run.trigger,
    run.status,
    run.error_code,
    run.started_at,
    run.finished_at,
    run.rows_added,
    run.rows_changed,
    run.rows_removed
  FROM sync_jobs AS job
  JOIN sync_runs AS run ON run.organization_id = job.organization_id AND run.collection = job.collection AND run.id >= coalesce(
    (
      SELECT id
      FROM sync_runs
      WHERE organization_id = job.organization_id AND collection = job.collection
      ORDER BY id DESC
      LIMIT 1 OFFSET ? - 1
    ),
    0
  )
  ORDER BY run.id DESC
`

/** A column that came after the first walk of its collection. */
export interface NewColumn {
  collection: string
  column: string
  path: string
  type: string
  first_seen_at: string
}

/** Most new columns that are read. */
const COLUMNS = 100

/** The columns that came since a time, latest first, without those of a collection's first hour. */
export function readNewColumns(connection: Connection, since: string): NewColumn[] {
  return connection.prepare(NEW_COLUMNS_SQL).all(since, COLUMNS) as NewColumn[]
}

const NEW_COLUMNS_SQL = `
  SELECT collection, "column", path, type, first_seen_at
  FROM sync_columns AS found
  WHERE
    first_seen_at >= ?
    AND julianday(first_seen_at) > (
      SELECT min(julianday(first_seen_at)) FROM sync_columns WHERE collection = found.collection
    ) + 1.0 / 24
  ORDER BY first_seen_at DESC, collection, "column"
  LIMIT ?
`

/** What a budget is known to allow; `known` as `api/rate` stores it. */
export interface StoredGate {
  scope: string
  known: string | null
}

export function readGates(connection: Connection): StoredGate[] {
  return connection.prepare('SELECT scope, known FROM sync_gates').all() as StoredGate[]
}

/** Which token, by its fingerprint, each organization used last. Keep it out of all output. */
export function readTokensUsed(connection: Connection): Map<string, string | null> {
  const rows = connection.prepare('SELECT id, last_fingerprint FROM organizations').raw().all()
  return new Map(rows as [string, string | null][])
}

export interface MirrorSize {
  bytes: number
  walBytes: number
  /** That this user may use on the mirror's disk; null if the system does not say. */
  freeBytes: number | null
}

/** Opens nothing, since closing any handle of the file drops SQLite's locks. */
export function mirrorSize(file: string): MirrorSize {
  const sizeOf = (name: string) => fs.statSync(name, { throwIfNoEntry: false })?.size ?? 0
  const real = fs.realpathSync(file)
  return { bytes: sizeOf(real), walBytes: sizeOf(`${real}-wal`), freeBytes: freeBytes(path.dirname(real)) }
}

function freeBytes(folder: string): number | null {
  try {
    const { bavail, bsize } = fs.statfsSync(folder)
    return bavail * bsize
  } catch {
    return null
  }
}
