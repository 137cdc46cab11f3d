import { printable } from '../../../text.ts'
import type { Sql } from '../sql.ts'

/** Who holds the lock that a statement waits for; `pid` is null if it waits for none. What the role may not see is null. */
export interface Holder {
  pid: number | null
  /** As PostgreSQL names it: advisory, relation, transactionid. */
  waits_for: string | null
  role: string | null
  program: string | null
  address: string | null
  since: Date | null
  /** The first word of its last statement. */
  word: string | null
  is_idle: boolean | null
}

const HOLDER = `
    holder.pid,
    waiting.wait_event AS waits_for,
    holder.usename AS role,
    holder.application_name AS program,
    host(holder.client_addr) AS address,
    coalesce(holder.xact_start, holder.state_change) AS since,
    substring(holder.query FROM '^\\s*([A-Za-z]+)') AS word,
    holder.state <> 'active' AS is_idle`

// The first of those that block it. Its statement's text may quote data, so that only its first word leaves the server.
const FIRST_BLOCKING = `
    SELECT *
    FROM pg_stat_activity
    WHERE pid = ANY (pg_blocking_pids(waiting.pid))
    ORDER BY coalesce(xact_start, state_change), pid
    LIMIT 1`

/** Whether the server works for the connection $1, and who keeps it waiting. */
export const AT_WORK = `
  SELECT ${HOLDER}
  FROM pg_stat_activity AS waiting
  LEFT JOIN LATERAL (${FIRST_BLOCKING}) AS holder ON waiting.wait_event_type = 'Lock'
  WHERE waiting.pid = $1 AND waiting.state = 'active'
`

/**
 * Whose locks keep workers of this database waiting, each once, the oldest first. Who waits is looked up in `pg_locks`, which shows it to
 * every role. A wait of less than a second is nothing to tell of.
 */
const ALL_HOLDERS = `
  SELECT DISTINCT ON (since, pid) *
  FROM (
    SELECT ${HOLDER.replace('waiting.wait_event', 'wanted.locktype')}
    FROM pg_locks AS wanted
    JOIN pg_stat_activity AS waiting ON waiting.pid = wanted.pid
    CROSS JOIN LATERAL (${FIRST_BLOCKING}) AS holder
    WHERE NOT wanted.granted
      AND wanted.waitstart < clock_timestamp() - interval '1 second'
      AND waiting.datname = current_database()
      AND waiting.application_name = 'admin-mirror'
  ) AS found
  ORDER BY since, pid
  LIMIT 10
`

/** A text for each lock of somebody else that workers wait for. */
export async function lockHolders(sql: Pick<Sql, 'rows'>): Promise<string[]> {
  const rows = await sql.rows<Omit<Holder, 'since'> & { since: number | null }>(ALL_HOLDERS)
  return rows.map(({ since, ...holder }) =>
    holderText({ ...holder, since: since === null ? null : new Date(since) }),
  )
}

/** A word that is none of these may be anything. */
const KINDS =
  /^(?:SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|COPY|LOCK|ALTER|CREATE|DROP|TRUNCATE|VACUUM|ANALYZE|CLUSTER|REINDEX|REFRESH|BEGIN|FETCH|EXPLAIN)$/

/** `waiting for a lock on the PostgreSQL server that the role lea holds (psql, 10.0.0.7, process 4711) since ..., by ALTER` */
export function holderText({ pid, waits_for, role, program, address, since, word, is_idle }: Holder): string {
  const lock = waits_for === 'advisory' ? 'an advisory lock' : 'a lock'
  const who = role === null ? 'somebody' : `the role ${printable(role, 60)}`
  const from = [program && printable(program, 60), address, `process ${pid}`].filter(Boolean).join(', ')
  const kind = KINDS.test(word?.toUpperCase() ?? '')
    ? `, ${is_idle ? 'idle after' : 'by'} ${word?.toUpperCase()}`
    : ''
  const when = since === null ? '' : ` since ${since.toISOString()}`
  return `waiting for ${lock} on the PostgreSQL server that ${who} holds${when}${kind} (${from})`
}
