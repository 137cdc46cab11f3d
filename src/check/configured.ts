import { statSync } from 'node:fs'
import { DEFAULT_COLLECTIONS } from '../config/collections.ts'
import type { Config } from '../config/config.ts'
import { nearest } from '../config/issues.ts'
import { counted } from '../text.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

/** What a valid configuration holds, and names in it that look mistyped. */
export function checkConfigured({ file, organizations, collections }: Config): Finding[] {
  const lists = organizations.reduce((sum, organization) => sum + organization.collections.length, 0)
  const first = ok(
    'configuration',
    `${file}: ${counted(organizations.length, 'organization')}, ${counted(lists, 'list')}`,
  )
  return [first, ...suspiciousNames(collections)]
}

/** Whether other users of this machine can read a token that is written in the file. */
export function checkReadable({ file, literalTokens }: Pick<Config, 'file' | 'literalTokens'>): Finding[] {
  const [name] = literalTokens
  const isReadable = ((statSync(file, { throwIfNoEntry: false })?.mode ?? 0) & 0o004) !== 0
  if (name === undefined || !isReadable) return []
  return [
    warn(
      'configuration',
      `${file} can be read by every user of this machine, and holds the token of ${name}${literalTokens.length > 1 ? ` and ${literalTokens.length - 1} more` : ''}`,
      `type: chmod o-rwx '${file}'; or name a tokenFile or an environment variable instead`,
    ),
  ]
}

/** Collections whose names are close to a known one. */
export function suspiciousNames(collections: readonly { name: string }[]): Finding[] {
  return collections.flatMap(({ name }) => checkName(name))
}

function checkName(name: string): Finding[] {
  const meant = nearest(name, DEFAULT_COLLECTIONS)
  if (meant === null || meant === name) return []
  return [
    warn(
      'configuration',
      `the collection ${name} is none that is known, and close to ${meant}, which is mirrored beside it`,
      `is ${meant} meant? Then write ${meant} instead of ${name}`,
    ),
  ]
}

/** Whether each token can be read. Sends nothing. */
export function checkTokens({ organizations }: Pick<Config, 'organizations'>): Finding[] {
  const failed = organizations.flatMap(({ name, readToken }) => {
    try {
      readToken()
      return []
    } catch (error) {
      return [fail(`token ${name}`, 2, error instanceof Error ? error.message : 'cannot be read', null)]
    }
  })
  const fine = organizations.length - failed.length
  return fine > 0 ? [ok('tokens', `${counted(fine, 'token')} can be read`), ...failed] : failed
}
