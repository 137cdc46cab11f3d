/** Where the mirror is. */
export interface PostgresAddress {
  host: string
  port: number
  user: string
  database: string
  /** Letters, digits and `_`. */
  schema: string
  /** A certificate's authority, as a file's text; null: those of the system. Without `tls` there is none. */
  tls: { authority: string | null } | null
  /** A function, so that no log and no error can print it. Undefined: none. */
  password: () => string | undefined
  /** Where the user has written this address, for messages: `"database"`. */
  setting: string
}

/** Where a mirror is, for messages. */
export function schemaAt({ schema, database }: Pick<PostgresAddress, 'schema' | 'database'>): string {
  return `the schema ${schema} of the database ${database}`
}

export function serverAt({ host, port }: Pick<PostgresAddress, 'host' | 'port'>): string {
  return `the PostgreSQL server at ${host}:${port}`
}

/** What pg connects with. */
export function clientConfig({ host, port, user, database, schema, tls, password }: PostgresAddress) {
  const settings = {
    search_path: schema,
    TimeZone: 'UTC',
    DateStyle: 'ISO',
    extra_float_digits: '1',
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
      ? { rejectUnauthorized: true, host, ...(tls.authority === null ? {} : { ca: tls.authority }) }
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
