import path from 'node:path'
import { type Config, loadConfig } from '../config/config.ts'
import { checkCron } from '../schedule/check.ts'
import { NAME_ENDS } from '../store/sqlite/tables/declarations.ts'
import type { Runtime } from './runtime.ts'

const DEFAULT_CONFIG = 'config/admin-mirror.yaml'

/** The options that every command has. */
export interface Globals {
  config?: string
  logLevel: string
  /** Null: readable on a terminal, else JSON. */
  logFormat?: 'json' | 'pretty'
  quiet?: boolean
}

/** The configuration of a command. Commands that send nothing leave the tokens alone, so that an analyst needs none. */
export function readConfig(runtime: Runtime, globals: Globals, tokens: 'resolve' | 'leave'): Config {
  const { env, cwd } = runtime
  // Containers pass an empty variable where they mean none.
  const file = globals.config ?? (env.ADMIN_MIRROR_CONFIG || DEFAULT_CONFIG)
  return loadConfig(path.resolve(cwd, file), { env, tokens, isCron: checkCron, nameEnds: NAME_ENDS })
}
