import path from 'node:path'
import { isPostgresAddress } from '../config/postgres-address.ts'
import { UsageError } from '../errors.ts'
import { shellWord } from '../text.ts'
import { type Globals, typedConfig } from './globals.ts'
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
    return { database: path.resolve(runtime.cwd, database), config: null, configOption: '', queryCommand }
  }
  const { readConfig } = await import('./config-file.ts')
  const config = readConfig(runtime, globals, 'leave')
  const configOption = typedConfig(globals)
  return {
    database: config.database,
    config,
    configOption,
    queryCommand: `admin-mirror query${configOption}`,
  }
}
