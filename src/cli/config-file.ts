import fs from 'node:fs'
import path from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { type Config, loadConfig } from '../config/config.ts'
import { UsageError } from '../errors.ts'
import { NAME_ENDS } from '../store/core/tables.ts'
import { shellWord } from '../text.ts'
import type { Globals, Runtime } from './runtime.ts'

const DEFAULT_CONFIG = 'config/admin-mirror.yaml'

/** The configuration of a command. Commands that send nothing leave the tokens alone, so that an analyst needs none. */
export function readConfig(runtime: Runtime, globals: Globals, tokens: 'resolve' | 'leave'): Config {
  const { env, cwd } = runtime
  const file = path.resolve(cwd, globals.config ?? DEFAULT_CONFIG)
  if (globals.config === undefined) assertMeant(file, cwd)
  return loadConfig(file, { env, tokens, nameEnds: NAME_ENDS })
}

/**
 * Throws UsageError for the default file if another user owns it, as in a folder that all users can write to, such as the temporary one: the
 * file could send our tokens to their address. For root this includes that user's own folder: `tokenFile` may name what only root can read.
 */
function assertMeant(file: string, cwd: string): void {
  let owner: number | undefined
  try {
    owner = ownerOfFile(file)
  } catch {
    // Opening it reports what is wrong.
  }
  const user = process.geteuid?.()
  if (owner === undefined || owner === user || owner === 0 || (user !== 0 && owner === ownerOfFile(cwd)))
    return
  throw new UsageError(
    `${file} belongs to another user, and nobody has named it; if it is meant, name it: --config ${shellWord(file)}`,
  )
}

function ownerOfFile(place: string): number | undefined {
  return fs.statSync(place, { throwIfNoEntry: false })?.uid
}

/**
 * Returns a function that reads the configuration of a running process again when its file has changed, for what is told of the lists:
 * so `/check` and pings have the same picture as a `status` that is typed. While the file is gone or wrong, it is the one that the process has,
 * and says so.
 */
export function configOfFile(config: Config, { env }: Pick<Runtime, 'env'>): () => Config {
  let [stamp, known] = [stampOf(config.file), config]
  return () => {
    const now = stampOf(config.file)
    if (now === stamp) return known
    stamp = now
    try {
      known = loadConfig(config.file, { env, tokens: 'leave', nameEnds: NAME_ENDS })
    } catch {
      known = { ...config, isLost: true }
    }
    return known
  }
}

function stampOf(file: string): string {
  const { mtimeMs, size, ino } = fs.statSync(file, { throwIfNoEntry: false }) ?? {}
  return [mtimeMs, size, ino].join(' ')
}

/** How the program names itself to servers. */
export const USER_AGENT = `admin-mirror/${manifest.version}`
