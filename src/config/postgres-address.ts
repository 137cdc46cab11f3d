import { isLoopback } from '../loopback.ts'

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

/** Whether a `database` of the configuration is meant as an address, not as a file. */
export function isPostgresAddress(text: string): boolean {
  return /^postgres(?:ql)?:/i.test(text)
}

const POSTGRES_HINT =
  'Write it like postgres://user@host:5432/name?schema=admin_mirror, with the password as PGPASSWORD in the environment, or as ' +
  `postgres://user:\${PASSWORD}@host/name.`

const DEFAULT_SCHEMA = 'admin_mirror'

/** The password ends at the last @ before the path, so that it may hold characters that an address cannot. */
const FORM =
  /^postgres(?:ql)?:\/\/(?:([^:@/?#]*)(?::(.*))?@)?(\[[\da-f:.]+\]|[^:@/?#[\]]*)(?::(\d{1,5}))?\/([^/?#@]+)(?:\?([^#@]*))?$/is

const SETTINGS = ['schema', 'sslmode', 'sslrootcert']

/** The parts of the address, or what is wrong with it; a problem never quotes the address, which may hold a password. */
export function parsePostgresAddress(text: string): { value: PostgresSettings } | { problem: string } {
  const match = FORM.exec(text)
  if (!match) return { problem: `must be the address of a PostgreSQL database. ${POSTGRES_HINT}` }
  const [, user = '', password, host = '', port = '5432', database = '', query = ''] = match
  const settings = new URLSearchParams(query)
  const unknown = [...settings.keys()].find((name) => !SETTINGS.includes(name))
  if (unknown !== undefined)
    return { problem: `may have only these settings behind ?: ${SETTINGS.join(', ')}. ${POSTGRES_HINT}` }
  if (user === '') return { problem: `must name the role to connect as. ${POSTGRES_HINT}` }
  if (Number(port) < 1 || Number(port) > 65535)
    return { problem: 'must have a port from 1 to 65535, or none for 5432.' }
  const schema = settings.get('schema') ?? DEFAULT_SCHEMA
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema) || schema.startsWith('pg_') || schema === 'information_schema')
    return {
      problem:
        'must have a schema of lower-case letters, digits and _ that begins with a letter, but not with pg_.',
    }
  const server = host === '' ? 'localhost' : percentDecoded(host).replace(/^\[|\]$/g, '')
  const tls = tlsOf(settings.get('sslmode'), server)
  if (tls === null)
    return {
      problem:
        'must have sslmode=verify-full (TLS, the default except on this machine) or sslmode=disable; a certificate is always verified.',
    }
  const secret = password === undefined ? null : percentDecoded(password)
  const shownHost = server.includes(':') ? `[${server}]` : server
  return {
    value: {
      host: server,
      port: Number(port),
      user: percentDecoded(user),
      database: percentDecoded(database),
      schema,
      tls,
      authority: settings.get('sslrootcert'),
      password: () => secret,
      shown: `postgres://${user}@${shownHost}:${port}/${database}?schema=${schema}`,
    },
  }
}

function tlsOf(mode: string | null, host: string): boolean | null {
  if (mode === null) return !isLoopback(host)
  if (mode === 'disable') return false
  return ['require', 'verify-ca', 'verify-full'].includes(mode) ? true : null
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
