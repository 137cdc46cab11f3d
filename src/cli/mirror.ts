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
import { shellWord } from '../text.ts'
import type { Globals, Runtime } from './runtime.ts'

// What commands do with a mirror, be it a file or a schema of a PostgreSQL server.

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

/** Which mirror a command reads, and how users name it. */
export interface ReadTarget extends MirrorPlace {
  /** How `query` asks this mirror. */
  queryCommand: string
}

/**
 * The file that `--database` names, else the mirror of the configuration. With `--database` no configuration is read, nor
 * the code for it loaded: an analyst has none, and it may be of another mirror. Throws UsageError, and ConfigError.
 */
export async function readTarget(
  runtime: Runtime,
  globals: Globals,
  database: string | undefined,
): Promise<ReadTarget> {
  if (database !== undefined) {
    if (database === '') throw new UsageError('--database: name a file')
    // It may hold a password, so it is not repeated.
    if (isPostgresAddress(database))
      throw new UsageError(
        '--database names a file; a mirror on PostgreSQL is read with a configuration that names it, --config FILE',
      )
    const queryCommand = `admin-mirror query --database ${shellWord(database)}`
    return { database: path.resolve(runtime.cwd, database), config: null, queryCommand }
  }
  const { readConfig } = await import('./config-file.ts')
  const config = readConfig(runtime, globals, 'leave')
  const queryCommand = 'admin-mirror query'
  return { database: config.database, config, queryCommand }
}

/** Opens the mirror for writing, or makes it. Throws MirrorError, and UsageError if it holds the lists of another address. */
export async function openMirror(options: OpenOptions): Promise<OpenMirror> {
  // Nothing of PostgreSQL is loaded where the mirror is a file.
  if (options.config.postgres) return (await import('./postgres/open.ts')).openServer(options)
  return (await import('./file/open.ts')).openFile(options)
}

/** What `status` reads; null if there is no mirror yet. Changes nothing. Throws MirrorError. */
export async function readFacts(place: MirrorPlace, runtime: Runtime): Promise<MirrorFacts | null> {
  if (place.config?.postgres) return (await import('./postgres/mirror.ts')).readFacts(place, runtime)
  return (await import('./file/reading.ts')).readFacts(place, runtime)
}

/** Why the mirror cannot be written now; null: it can, or only its server knows. */
export async function writeFault({ database, config }: MirrorPlace): Promise<string | null> {
  if (config?.postgres) return null
  const { unwritableNamed, unwritableNow } = await import('./file/reading.ts')
  return config ? unwritableNow(database, false) : unwritableNamed(database)
}

/** Whether there is a mirror. Changes nothing. Throws MirrorError. */
export async function isMade(config: Config, runtime: Runtime): Promise<boolean> {
  return (await readFacts({ database: config.database, config }, runtime)) !== null
}

export function noMirror(place: string): MirrorError {
  return new MirrorError(`there is no mirror at ${place} yet; "admin-mirror sync" makes it`)
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
