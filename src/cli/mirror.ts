import path from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { isPostgresAddress } from '../config/postgres-address.ts'
import { MirrorError, UsageError } from '../errors.ts'
import type { Forgetting } from '../store/core/forget.ts'
import type { Leases } from '../store/core/leases.ts'
import type { Dialect, Rule } from '../store/core/sql.ts'
import type { MirrorFacts } from '../store/core/status.ts'
import type { Tokens } from '../store/core/tokens.ts'
import type { WorkQueue } from '../store/postgres/queue.ts'
import type { Store } from '../sync/store.ts'
import { printable } from '../text.ts'
import type { Globals, Runtime } from './runtime.ts'

// What commands do with a mirror, be it a file or a schema of a PostgreSQL server, whose code is loaded only where it is needed.

/** Which mirror a command works on. */
export interface MirrorPlace {
  /** Its file, or what may be shown of the server's address. */
  database: string
  /** Null where `--database` names a file. */
  config: Config | null
}

/** The option of commands that only read. */
export interface DatabaseOption {
  database?: string
}

/**
 * The file that `--database` names, else the mirror of the configuration. With `--database` no configuration is read, nor
 * the code for it loaded: an analyst has none, and it may be of another mirror. Throws UsageError, and ConfigError.
 */
export async function readPlace(
  runtime: Runtime,
  globals: Globals,
  { database }: DatabaseOption,
): Promise<MirrorPlace> {
  if (database === undefined) {
    const { readConfig } = await import('./configuration.ts')
    const config = readConfig(runtime, globals, 'leave')
    return { database: config.database, config }
  }
  if (database === '') throw new UsageError('--database: name a file')
  // It may hold a password, so it is not repeated.
  if (isPostgresAddress(database))
    throw new UsageError(
      '--database names a file; a mirror on PostgreSQL is read with a configuration that names it, --config FILE',
    )
  return { database: path.resolve(runtime.cwd, database), config: null }
}

/** Opens the mirror for writing, or makes it. Throws MirrorError, and UsageError if it holds the lists of another address. */
export async function openMirror(options: OpenOptions): Promise<OpenMirror> {
  // Nothing of PostgreSQL is loaded where the mirror is a file.
  if (options.config.postgres) return (await import('./postgres.ts')).openServer(options)
  return (await import('./file.ts')).openFile(options)
}

/** What `status` reads; null if there is no mirror yet. Changes nothing. Throws MirrorError. */
export async function readFacts(place: MirrorPlace, runtime: Runtime): Promise<MirrorFacts | null> {
  if (place.config?.postgres) return (await import('./postgres.ts')).readFacts(place, runtime)
  return (await import('./file.ts')).readFacts(place, runtime)
}

/** Why the mirror cannot be written now; null: it can, or only its server knows. */
export async function writeFault(place: MirrorPlace): Promise<string | null> {
  return place.config?.postgres ? null : (await import('./file.ts')).writeFault(place)
}

export function noMirror(place: string): MirrorError {
  return new MirrorError(`there is no mirror at ${place} yet; "admin-mirror sync" makes it`)
}

export interface Named {
  id: string
  name: string
}

/**
 * Those of the configuration or the mirror that have this UUID or name, in other capitals only if none has these. Throws UsageError where
 * there is none.
 */
export function organizationsNamed<T extends Named>(typed: string, known: readonly T[]): T[] {
  const folded = typed.toLowerCase()
  const exact = known.filter(({ id, name }) => id === folded || name === typed)
  const found = exact.length > 0 ? exact : known.filter(({ name }) => name.toLowerCase() === folded)
  if (found.length > 0) return found
  const names = [...new Set(known.map(({ name }) => name))].join(', ')
  throw new UsageError(
    `--org ${printable(typed)}: there is no organization of this name or UUID (known: ${printable(names, 1000)})`,
  )
}

export interface OpenOptions {
  config: Config
  runtime: Runtime
  /** `info` gets the long work and the long waits of this process; `warn` what a user should know. */
  log: Pick<Logger, 'info' | 'warn'>
  /** For commands that read lists: the mirror notes `api.baseUrl`. `accept`: even if it holds the lists of another address. */
  address?: 'claim' | 'accept'
}

/** A mirror that is open for writing. Each of its methods may throw MirrorError. */
export interface OpenMirror {
  /** Runs a rule of the store that only reads. */
  run<T>(rule: (dialect: Dialect) => Rule<T>): Promise<T>
  store: Store
  tokens: Tokens
  leases: Leases
  forgetting: Forgetting
  /** The clock that all processes on the mirror share. Epoch milliseconds. */
  now: () => number
  /** For the listener: whether the mirror can be used. */
  probe(): Promise<void>
  /** Why it cannot be written now; null: it can, or only its server knows. */
  writeFault(): string | null
  facts(): Promise<MirrorFacts>
  /** Of a mirror that several workers share: opens the queue that divides the work. `onTrouble` gets errors of its maintenance. */
  openQueue?: (onTrouble: (error: unknown) => void) => Promise<WorkQueue>
  close(): Promise<void>
}
