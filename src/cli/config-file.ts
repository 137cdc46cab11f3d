import path from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { type Config, loadConfig } from '../config/config.ts'
import { checkCron } from '../schedule/cron.ts'
import { NAME_ENDS } from '../store/core/declarations.ts'
import { shellWord } from '../text.ts'
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
  return loadConfig(path.resolve(cwd, globals.config ?? DEFAULT_CONFIG), {
    env,
    tokens,
    isCron: checkCron,
    nameEnds: NAME_ENDS,
  })
}

/** How the program names itself to servers. */
export const USER_AGENT = `admin-mirror/${manifest.version}`

/** ` --config FILE` as it was named, or nothing for the default: for the end of commands that users paste. */
export function typedConfig({ config }: Pick<Globals, 'config'>): string {
  return config === undefined ? '' : ` --config ${shellWord(config)}`
}
