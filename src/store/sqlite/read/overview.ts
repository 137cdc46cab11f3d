import fs from 'node:fs'
import path from 'node:path'
import { COLUMN_TROUBLES_SQL, type ColumnTrouble } from '../../column-troubles.ts'
import {
  type LastRuns,
  type MirrorSize,
  MOST_COLUMNS,
  MOST_RUNS,
  type NewColumn,
  RUN_MARK,
  type StoredGate,
} from '../../overview.ts'
import type { Connection } from '../sql.ts'

/** The last runs of every job. */
export function readLastRuns(connection: Connection): LastRuns[] {
  return connection.prepare(LAST_RUNS_SQL).all({ runs: MOST_RUNS }) as LastRuns[]
}

// One text per job: 30,000 rows for a thousand jobs would block the event loop five times as long. By the index, since a window
// function would read all lines that `keepRuns` keeps.
function lastSeconds(trigger: string): string {
  return `(
      SELECT unixepoch(finished_at, 'subsec') - unixepoch(started_at, 'subsec')
      FROM sync_runs
      WHERE organization_id = job.organization_id AND collection = job.collection AND finished_at IS NOT NULL AND trigger ${trigger}
      ORDER BY id DESC
      LIMIT 1
    )`
}

const LAST_RUNS_SQL = `
  SELECT
    organization_id,
    collection,
    coalesce((
      SELECT group_concat(mark, '')
      FROM (
        SELECT ${RUN_MARK} AS mark
        FROM sync_runs
        WHERE organization_id = job.organization_id AND collection = job.collection
        ORDER BY id DESC
        LIMIT :runs
      )
    ), '') AS marks,
    ${lastSeconds("<> 'refresh'")} AS seconds,
    ${lastSeconds("= 'refresh'")} AS refresh_seconds
  FROM sync_jobs AS job
`

/** The columns that came since a time, latest first, without those of a collection's first hour. */
export function readNewColumns(connection: Connection, since: string): NewColumn[] {
  return connection.prepare(NEW_COLUMNS_SQL).all(since, MOST_COLUMNS) as NewColumn[]
}

const NEW_COLUMNS_SQL = `
  SELECT collection, "column", path, type, first_seen_at
  FROM sync_known_columns AS found
  WHERE
    first_seen_at >= ?
    AND julianday(first_seen_at) > (
      SELECT min(julianday(first_seen_at)) FROM sync_known_columns WHERE collection = found.collection
    ) + 1.0 / 24
  ORDER BY first_seen_at DESC, collection, "column"
  LIMIT ?
`

/** None of a copy: the mirror alone has the counts of each list. */
export function readColumnTroubles(connection: Connection): ColumnTrouble[] {
  return connection.prepare(COLUMN_TROUBLES_SQL).all() as ColumnTrouble[]
}

export function readGates(connection: Connection): StoredGate[] {
  return connection.prepare('SELECT scope, known FROM sync_gates').all() as StoredGate[]
}

/** Which token, by its fingerprint, each organization used last. Keep it out of all output. */
export function readTokensUsed(connection: Connection): Map<string, string | null> {
  const rows = connection.prepare('SELECT id, last_fingerprint FROM organizations').raw().all()
  return new Map(rows as [string, string | null][])
}

/** Opens nothing, since closing any handle of the file drops SQLite's locks. */
export function mirrorSize(file: string): MirrorSize {
  const real = fs.realpathSync(file)
  return { bytes: sizeOf(real), walBytes: sizeOf(`${real}-wal`), freeBytes: freeBytes(real) }
}

function sizeOf(file: string): number {
  return fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** What this user may use on the disk of a file, through links. Null if the system does not say, or there is no such file. */
export function freeBytes(file: string): number | null {
  try {
    const folder = path.dirname(fs.realpathSync(file))
    const { bavail, bsize } = fs.statfsSync(folder)
    return bavail * bsize
  } catch {
    return null
  }
}
