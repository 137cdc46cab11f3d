import fs from 'node:fs'
import { MirrorError, systemCode } from '../../errors.ts'

/** Where the mirror is: the settings of the configuration. */
export interface PostgresAddress {
  host: string
  port: number
  user: string
  database: string
  /** Letters, digits and `_`. */
  schema: string
  tls: boolean
  /** The file with the authority of its certificate; null: those of the system. */
  authority: string | null
  /** A function, so that no log and no error can print it. Undefined: none. */
  password: () => string | undefined
  /** All of it without the password, for messages. */
  shown: string
}

export function serverAt({ host, port }: Pick<PostgresAddress, 'host' | 'port'>): string {
  return `the PostgreSQL server at ${host}:${port}`
}

/** What pg connects with. Throws MirrorError for a file that cannot be read. */
export function clientConfig(address: PostgresAddress) {
  const { host, port, user, database, schema, tls, authority, password } = address
  const settings = {
    search_path: schema,
    TimeZone: 'UTC',
    DateStyle: 'ISO',
    extra_float_digits: '1',
    standard_conforming_strings: 'on',
    jit: 'off',
    // A worker that is halted in the middle of a transaction keeps no locks, and its idle connections stay.
    idle_in_transaction_session_timeout: '20000',
    idle_session_timeout: '0',
    // The server learns within 10 seconds that a machine is gone, and drops its locks: two questions without an answer end the
    // connection. The system of a worker answers, however slow the worker or the server is.
    tcp_keepalives_idle: '4',
    tcp_keepalives_interval: '3',
    tcp_keepalives_count: '2',
    tcp_user_timeout: '9500',
  }
  return {
    host,
    port,
    user,
    database,
    password: password(),
    // With `host`: pg passes on no IP address, and then any certificate for `localhost` would be accepted.
    ssl: tls
      ? { rejectUnauthorized: true, host, ...(authority === null ? {} : { ca: readAuthority(authority) }) }
      : false,
    application_name: 'admin-mirror',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5000,
    options: Object.entries(settings)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
  }
}

function readAuthority(file: string): string {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch (error) {
    throw new MirrorError(
      `the file that sslrootcert in the address names cannot be read (${systemCode(error) ?? 'unreadable'}): ${file}; name the certificate of the authority that signed the server's`,
    )
  }
}
