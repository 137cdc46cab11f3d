import { JobError, KnownError, MirrorError, systemCode, UsageError } from '../../errors.ts'
import { printable } from '../../text.ts'
import { type PostgresAddress, serverAt } from './address.ts'

/** What pg and the network say of an error. PostgreSQL's own message may quote data, so it is never shown. */
function failureOf(error: unknown): { code: string; message: string } {
  return { code: systemCode(error) ?? '', message: error instanceof Error ? error.message : '' }
}

/** SQLSTATEs of a server that may come back: connections (08), resources and disks (53, 58), restarts (57P), time-outs, failovers (25006, 55000). */
const AWAY = /^(?:08|53|58)...$|^57P0[1235]$|^(?:57014|25P03|25P04|55000|25006)$/

/** Node's codes, and pg's own words, which have none, for a connection that broke or was not made. */
const NETWORK =
  /^(?:ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_AGAIN|ENOTFOUND|ENOENT|EADDRNOTAVAIL)|^(?:Connection terminated|timeout e|Query read timeout|Client )/

/** What the pool says where each of its connections waits for an answer. */
const ALL_IN_USE = /^timeout exceeded/

/** Whether the same statement may succeed later, once the server is back. */
export function isAway(error: unknown): boolean {
  const { code, message } = failureOf(error)
  return AWAY.test(code) || NETWORK.test(code || message)
}

/** Whether the server is there but ends this statement, by a time-out for example: it may succeed later, or never. */
export function isRefusedEachTime(error: unknown): boolean {
  return ['57014', '25P03', '25P04', '55000'].includes(failureOf(error).code)
}

/** Whether the same transaction may succeed at once. */
export function isConflict(error: unknown): boolean {
  return ['40001', '40P01', '55P03'].includes(failureOf(error).code)
}

/** Whether the server refuses the statement, and would again. For pg's own errors, inside a transaction. */
export function isRefusal(error: unknown): boolean {
  return !isAway(error) && !isConflict(error) && /^[0-9A-Z]{5}$/.test(failureOf(error).code)
}

/** Another worker changed a table between two statements. */
const CHANGED_TABLES = ['0A000', '42883', '42703', '42P01', '42804', '42P18']

const refusesRole = ({ user }: PostgresAddress) =>
  `refuses the role ${user}: check its password (in the URL by \${NAME}, or PGPASSWORD, or the file that PGPASSFILE names, chmod 600) and pg_hba.conf`

/** What PgBouncer says, or the pooler of a cloud, of a connection that has settings. */
const REFUSES_SETTINGS = /^unsupported startup parameter|command-line options/

/** Most poolers do one of these. */
export const BEHIND_POOLER =
  'stands behind a pooler that refuses or drops the settings of a connection: name the server itself in the address'

export const READ_ONLY = 'is read-only: name the primary server in the address'

/** What an SQLSTATE means, and what to do. */
const CURES: Readonly<Record<string, (address: PostgresAddress) => string>> = {
  '28P01': refusesRole,
  '28000': refusesRole,
  '3D000': ({ database, user }) =>
    `has no database ${database}: create it (CREATE DATABASE ${database} OWNER ${user}), or name another one in the address`,
  '42501': ({ user, schema }) =>
    `does not let the role ${user} do this: connect as the role that owns the schema ${schema}; for a new one run CREATE SCHEMA ${schema} AUTHORIZATION ${user}`,
  '53100': () => 'has no room on its disk',
  '53300': () => 'has no connection left: raise its max_connections, or run fewer workers',
  '57014': ({ user }) => `has ended a statement by its statement_timeout: raise it for the role ${user}`,
  '25006': () => READ_ONLY,
}

/** Returns an error of ours for one of pg's. */
export function translate(address: PostgresAddress, error: unknown): unknown {
  if (error instanceof KnownError || error instanceof UsageError) return error
  const { code, message } = failureOf(error)
  const server = serverAt(address)
  const state = `(SQLSTATE ${code})`
  const cure = CURES[code]?.(address)
  if (cure !== undefined) return new MirrorError(`${server} ${cure} ${state}`)
  if (REFUSES_SETTINGS.test(message)) return new MirrorError(`${server} ${BEHIND_POOLER}`)
  if (ALL_IN_USE.test(message))
    return new MirrorError(
      `${server} answers no statement of this process: the network may be cut, its tables may be locked (see pg_locks), or it has too much to do`,
    )
  if (isAway(error))
    return new MirrorError(
      `${server} cannot be reached (${code || printable(message, 80)}): see that it runs, and that the address names its host and port`,
    )
  if (CHANGED_TABLES.includes(code))
    return new JobError(
      'DATABASE',
      `${server} refuses a statement on the tables of this list ${state}: somebody has changed them, or something that was added to ` +
        'them, such as a trigger or a policy, is in the way',
    )
  // A value that PostgreSQL refuses concerns the job that brought it.
  if (/^(?:22|23|54)...$/.test(code))
    return new JobError('DATABASE', `${server} refused a row of this list ${state}`)
  if (/does not support SSL/.test(message))
    return new MirrorError(
      `${server} speaks no TLS: switch TLS on there, or add sslmode=disable to the address where the network between is yours alone`,
    )
  if (/TLS|SSL|CERT|SELF_SIGNED|UNABLE_TO/.test(code) || /certificate|self.signed/i.test(message))
    return new MirrorError(
      `${server}: its certificate is not trusted: name the file of its authority with sslrootcert=FILE in the address`,
    )
  if (/client password must be/.test(message)) return new MirrorError(`${server} ${refusesRole(address)}`)
  return code === '' ? error : new MirrorError(`${server} refused a statement ${state}`)
}
