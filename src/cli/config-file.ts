import fs from 'node:fs'
import path from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { type Config, loadConfig } from '../config/config.ts'
import { isPostgresAddress } from '../config/postgres-address.ts'
import { UsageError } from '../errors.ts'
import { checkCron } from '../schedule/cron.ts'
import { NAME_ENDS } from '../store/core/declarations.ts'
import { shellWord } from '../text.ts'
import type { MirrorPlace } from './mirror.ts'
import type { Runtime } from './runtime.ts'

export const DEFAULT_CONFIG = 'config/admin-mirror.yaml'

/** The options that every command has. */
export interface Globals {
  /** The file that the option names, or else the environment; neither: the default. */
  config?: string
  logLevel: string
  /** Null: readable on a terminal, else JSON. */
  logFormat?: 'json' | 'pretty'
  quiet?: boolean
}

/** The configuration of a command. Commands that send nothing leave the tokens alone, so that an analyst needs none. */
export function readConfig(runtime: Runtime, globals: Globals, tokens: 'resolve' | 'leave'): Config {
  const { env, cwd } = runtime
  const file = path.resolve(cwd, globals.config ?? DEFAULT_CONFIG)
  if (globals.config === undefined) assertMeant(file, cwd)
  return loadConfig(file, {
    env,
    tokens,
    isCron: checkCron,
    nameEnds: NAME_ENDS,
  })
}

/**
 * Throws UsageError for a file that nobody has named and another user has put into a folder for all, such as the temporary one: it could have
 * our tokens sent to his address.
 */
function assertMeant(file: string, cwd: string): void {
  let owner: number | undefined
  try {
    owner = ownerOf(file)
  } catch {
    // Whoever opens it says what is wrong.
  }
  if (owner === undefined || [process.geteuid?.(), 0, ownerOf(cwd)].includes(owner)) return
  throw new UsageError(
    `${file} belongs to another user, and nobody has named it; if it is meant, name it: --config ${shellWord(file)}`,
  )
}

function ownerOf(place: string): number | undefined {
  return fs.statSync(place, { throwIfNoEntry: false })?.uid
}

/** How the program names itself to servers. */
export const USER_AGENT = `admin-mirror/${manifest.version}`

/** ` --config FILE` as it was named, or nothing for the default: for the end of commands that users paste. */
export function typedConfig({ config }: Pick<Globals, 'config'>): string {
  return config === undefined ? '' : ` --config ${shellWord(config)}`
}

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
