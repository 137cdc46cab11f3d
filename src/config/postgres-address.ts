/** A PostgreSQL schema that holds the mirror. */
export interface PostgresSettings {
  host: string
  port: number
  user: string
  database: string
  schema: string
  /** Whether TLS is used; its certificate is always verified. */
  tls: boolean
  /** The file with the certificate's authority, as it was typed; null: the system's authorities. */
  authority: string | null
  /** From the URL; null: none there. A function, so that no log and no error can print it. */
  password: () => string | null
  /** The address without the password. */
  shown: string
}

/** Whether a `database` of the configuration is meant as an address, be it a wrong one, and not as a file. */
export function isPostgresAddress(text: string): boolean {
  return /^\s*(?:postgres(?:ql)?:|[a-z][\w+.:-]*:\/\/)/i.test(text)
}

const FORM =
  `must be like postgres://user@host:5432/name?schema=admin_mirror, with the password as PGPASSWORD in the environment or as user:\${PASSWORD}@. ` +
  'Behind ? may stand schema (at most 44 lower-case letters, digits and _), sslmode=disable (else TLS with a verified certificate, but on this machine), and sslrootcert'

/** No other name is, however it begins: `127.evil.example` leads where its owner wants. */
const THIS_MACHINE = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i

const TLS_MODES = ['disable', 'require', 'verify-ca', 'verify-full']

/** The parts of the address, or what is wrong with it; a problem never quotes the address, which may hold a password. */
export function parsePostgresAddress(text: string): { value: PostgresSettings } | { problem: string } {
  // A password from a variable may hold characters that an address cannot: it ends at the last @.
  const [, start = '', secret, end = ''] =
    /^(postgres(?:ql)?:\/\/[^:@/?#]+)(?::(.*))?(@[^@]+)$/is.exec(text) ?? []
  const url = URL.parse(start + end)
  const {
    schema = 'admin_mirror',
    sslmode = null,
    sslrootcert = null,
    ...others
  } = Object.fromEntries(url?.searchParams ?? [])
  const database = /^\/([^/]+)$/.exec(url?.pathname ?? '')?.[1]
  // The schema beside it, NAME_queue, has as many characters as pg-boss allows.
  const isSchema = /^(?!pg_|information_schema$)[a-z_][a-z0-9_]{0,43}$/.test(schema)
  const isMode = sslmode === null || TLS_MODES.includes(sslmode)
  if (!url || !database || !isSchema || !isMode || url.hash !== '' || Object.keys(others).length > 0)
    return { problem: `${FORM}.` }
  const host = decoded(url.hostname).replace(/^\[|\]$/g, '')
  const port = Number(url.port || 5432)
  return {
    value: {
      host,
      port,
      user: decoded(url.username),
      database: decoded(database),
      schema,
      tls: sslmode === null ? !THIS_MACHINE.test(host) : sslmode !== 'disable',
      authority: sslrootcert,
      password: () => (secret === undefined ? null : decoded(secret)),
      shown: `postgres://${url.username}@${url.hostname}:${port}/${database}?schema=${schema}`,
    },
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
