/** Where the mirror is, as the configuration says. */
export interface PostgresAddress {
  host: string
  port: number
  user: string
  database: string
  /** Letters, digits and `_`. */
  schema: string
  /** A certificate's authority, as a file's text; `system`: those of the system; null: no TLS. */
  tls: { authority: string | null } | null
  /** A function, so that no log and no error can print it. Empty: none. */
  password: () => string
}
