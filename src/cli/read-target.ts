import path from 'node:path'
import { isPostgresAddress } from '../config/postgres-address.ts'
import { UsageError } from '../errors.ts'
import { shellWord } from '../text.ts'
import { type Globals, readConfig, typedConfig } from './config-file.ts'
import type { MirrorPlace } from './mirror.ts'
import type { Runtime } from './runtime.ts'

/** The option of commands that only read. */
export interface DatabaseOption {
  database?: string
}

/** Which file a command reads. */
export interface ReadTarget extends MirrorPlace {
  /** See `typedConfig`: for commands that users paste. */
  configOption: string
  /** How `query` asks this file. */
  ask: string
}

/**
 * The file that `--database` names, else the mirror of the configuration. With `--database` no configuration is read: an
 * analyst has none, and it may be of another mirror. Throws UsageError, and ConfigError.
 */
export function readTarget(runtime: Runtime, globals: Globals, database: string | undefined): ReadTarget {
  if (database !== undefined) {
    if (database === '') throw new UsageError('--database: name a file')
    // It may hold a password, so it is not repeated.
    if (isPostgresAddress(database))
      throw new UsageError(
        '--database names a file; a mirror on PostgreSQL is read with a configuration that names it, --config FILE',
      )
    const ask = `admin-mirror query --database ${shellWord(database)}`
    return { database: path.resolve(runtime.cwd, database), config: null, configOption: '', ask }
  }
  const config = readConfig(runtime, globals, 'leave')
  const configOption = typedConfig(globals)
  return { database: config.database, config, configOption, ask: `admin-mirror query${configOption}` }
}
