import { JobError, KnownError, MirrorError, UsageError } from '../../../errors.ts'
import { printable } from '../../../text.ts'
import type { PostgresAddress } from './pool.ts'

/** A statement does not suit the tables: another worker, or somebody else, has changed them since this process read what they are like. */
export class OtherTablesError extends KnownError {
  override readonly name = 'OtherTablesError'
  readonly code = 'DATABASE'
}

/** What pg and the network say of an error. PostgreSQL's own message may quote data, so it is never shown. */
interface Failure {
  code: string
  message: string
}

function failureOf(error: unknown): Failure {
  const { code, message } = error as Partial<Record<keyof Failure, unknown>>
  return { code: typeof code === 'string' ? code : '', message: typeof message === 'string' ? message : '' }
}

/** SQLSTATEs of a server that is away, starting, full or overloaded: it may come back. */
const AWAY = new Set([
  '57P01', // administrator ended the connection
  '57P02', // crash of another process of the server
  '57P03', // the server is starting or stopping
  '57P05', // idle session time-out
  '25P03', // idle in transaction time-out
  '25P04', // transaction time-out
  '57014', // statement time-out
  '53000',
  '53100', // disk full
  '53200', // out of memory
  '53300', // too many connections
  '55000', // a standby that is being promoted
  '25006', // read-only: a failover is under way
  '58030', // I/O error
])

/** Without a code: pg's own words for a connection that broke. */
const BROKEN =
  /^(?:Connection terminated|timeout exceeded when trying to connect|timeout expired|Query read timeout|Client has encountered a connection error|Client was closed)/

const NETWORK =
  /^(?:ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EAI_AGAIN|ENOTFOUND|ENOENT|EADDRNOTAVAIL|UND_)/

/** Whether the same statement may succeed later, once the server is back. */
export function isAway(error: unknown): boolean {
  const { code, message } = failureOf(error)
  return (
    AWAY.has(code) || code.startsWith('08') || NETWORK.test(code) || (code === '' && BROKEN.test(message))
  )
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
  if (error instanceof KnownError || isAway(error) || isConflict(error)) return false
  return /^[0-9A-Z]{5}$/.test(failureOf(error).code)
}

/** What keeps a table or a view from being changed, in the server's words (`view mine`); null for another error, and where it speaks another language. */
export function dependentIn(error: unknown): string | null {
  const { detail } = error as { detail?: unknown }
  if (!['2BP01', '0A000'].includes(failureOf(error).code) || typeof detail !== 'string') return null
  // A type that cannot change: `rule _RETURN on view mine depends on column "a"`.
  return /^(?:rule _RETURN on )?(.+?) depends on /.exec(detail)?.[1] ?? null
}

/** Another worker changed a table between two statements. */
const CHANGED_TABLES = ['0A000', '42883', '42703', '42P01', '42804', '42P18']

/** Returns an error of ours for one of pg's. */
export function translate(address: PostgresAddress, error: unknown): unknown {
  if (error instanceof KnownError || error instanceof UsageError) return error
  const { code, message } = failureOf(error)
  const server = serverAt(address)
  const said = CURES[code]?.(address)
  if (said !== undefined) return new MirrorError(`${server} ${said}`)
  if (CHANGED_TABLES.includes(code))
    return new OtherTablesError(
      `${server} refuses a statement on the tables of this list (SQLSTATE ${code}): somebody has changed them, or something that was ` +
        'added to them, such as a trigger or a policy, is in the way',
    )
  if (NETWORK.test(code) || isAway(error))
    return new MirrorError(
      `${server} cannot be reached (${code || printable(message, 80)}): see that it runs, and that "database" in the configuration names its host and port`,
    )
  if (/TLS|SSL|CERT|SELF_SIGNED|UNABLE_TO/i.test(code) || /SSL|certificate|self.signed/i.test(message))
    return new MirrorError(`${server}: ${tlsAdvice(message)}`)
  if (/client password must be/.test(message))
    return new MirrorError(`${server} asks for the password of the role ${address.user}: ${PASSWORD}`)
  // A value that PostgreSQL refuses concerns the job that brought it.
  if (/^(?:22|23|54)/.test(code))
    return new JobError('DATABASE', `${server} refused a row of this list (SQLSTATE ${code})`)
  if (code === '') return error
  return new MirrorError(`${server} refused a statement (SQLSTATE ${code})`)
}

export function serverAt({ host, port }: Pick<PostgresAddress, 'host' | 'port'>): string {
  return `the PostgreSQL server at ${host}:${port}`
}

const PASSWORD = `give it in the URL by \${NAME}, or as PGPASSWORD, or in the file that PGPASSFILE names (chmod 600)`

const refusesRole = ({ user }: PostgresAddress) =>
  `refuses the role ${user}: check its password (in the URL by \${NAME}, or PGPASSWORD, or PGPASSFILE) and pg_hba.conf`
const isRestarting = () => 'is shutting down or starting up'

/** What an SQLSTATE means, and what to do. */
const CURES: Readonly<Record<string, (address: PostgresAddress) => string>> = {
  '28P01': refusesRole,
  '28000': refusesRole,
  '3D000': ({ database, user }) =>
    `has no database ${database}: create it (CREATE DATABASE ${database} OWNER ${user}), or name another one as "database"`,
  '42501': ({ user, database, schema }) =>
    `does not let the role ${user} do this in the database ${database}: connect as the role that owns the schema ${schema}; for a new one run CREATE SCHEMA ${schema} AUTHORIZATION ${user}`,
  '53100': () => 'has no room on its disk',
  '53300': () => 'has no connection left: raise its max_connections, or run fewer workers',
  '57P01': isRestarting,
  '57P02': isRestarting,
  '57P03': isRestarting,
  '57014': ({ user }) => `has ended a statement by its statement_timeout: raise it for the role ${user}`,
  '25006': () => 'is read-only: name the primary server as "database"',
}

function tlsAdvice(message: string): string {
  return /does not support SSL/i.test(message)
    ? 'it speaks no TLS: switch TLS on there, or add sslmode=disable to "database" where the network between is yours alone'
    : 'its certificate is not trusted: name the file of its authority with sslrootcert=FILE in "database"'
}
