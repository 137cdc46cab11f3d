import path from 'node:path'
import { type Config, loadConfig } from '../config/config.ts'
import { checkCron } from '../schedule/cron.ts'
import { NAME_ENDS } from '../store/sqlite/tables/declarations.ts'
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
