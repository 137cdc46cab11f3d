import path from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { type Config, loadConfig } from '../config/config.ts'
import type { Invocation, Runtime } from './runtime.ts'

// The configuration of a command, and of a process that runs.

/** How the program names itself to servers. */
export const USER_AGENT = `admin-mirror/${manifest.version}`

/** The configuration of a command. Commands that send nothing leave the tokens alone, so that an analyst needs none. */
export function readConfig({ env, cwd, globals }: Invocation, tokens: 'resolve' | 'leave'): Config {
  return loadConfig(path.resolve(cwd, globals.config), { env, tokens })
}

/**
 * The configuration of a running process as its file is now, for what is told of the lists: so `/check` and pings have the same picture as a
 * `status` that is typed. While the file is gone or wrong, it is the one that the process has, and says so.
 */
export function configOfFile(config: Config, { env }: Pick<Runtime, 'env'>): Config {
  try {
    return loadConfig(config.file, { env, tokens: 'leave' })
  } catch {
    return { ...config, isLost: true }
  }
}

/**
 * Names the budget that an organization's requests spend.
 * @param token The fingerprint of its token; without one, it has a budget of its own.
 */
export function budgetKey(
  { rateLimit }: Pick<Config, 'rateLimit'>,
  organization: string,
  token: string | null,
): string {
  return { all: 'all', organization, token: token ?? organization }[rateLimit.scope]
}
