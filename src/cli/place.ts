import path from 'node:path'
import type { Config } from '../config/config.ts'
import { isPostgresAddress } from '../config/postgres-address.ts'
import { MirrorError, UsageError } from '../errors.ts'
import type { MirrorFacts } from '../store/core/status.ts'
import type { Invocation, Runtime } from './runtime.ts'

// Which mirror a command works on, and what is read of it without opening it for writing. A mirror is a file, or a schema of a PostgreSQL
// server, whose code is loaded only where it is needed.

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
export async function readPlace(runtime: Invocation, { database }: DatabaseOption): Promise<MirrorPlace> {
  if (database === undefined) {
    const { readConfig } = await import('./configuration.ts')
    return placeOf(readConfig(runtime, 'leave'))
  }
  if (database === '') throw new UsageError('--database: name a file')
  // It may hold a password, so it is not repeated.
  if (isPostgresAddress(database))
    throw new UsageError(
      '--database names a file; a mirror on PostgreSQL is read with a configuration that names it, --config FILE',
    )
  return { database: path.resolve(runtime.cwd, database), config: null }
}

export function placeOf(config: Config): MirrorPlace {
  return { database: config.database, config }
}

/** What `status` reads; null if there is no mirror yet. Changes nothing. Throws MirrorError. */
export async function readFacts(place: MirrorPlace, runtime: Runtime): Promise<MirrorFacts | null> {
  if (place.config?.postgres)
    return (await import('./postgres.ts')).factsOnServer(place.config.postgres, runtime)
  return (await import('./file.ts')).factsInFile(place, runtime)
}

/** Throws MirrorError if there is no mirror yet, for a command that makes none. */
export async function assertMirror(config: Config, runtime: Runtime): Promise<void> {
  if ((await readFacts(placeOf(config), runtime)) === null) throw noMirror(config.database)
}

export function noMirror(place: string): MirrorError {
  return new MirrorError(
    `there is no mirror at ${place} yet: see that it is the right place; "admin-mirror sync" makes that of the configuration`,
  )
}
