import { once } from 'node:events'
import { statSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { DEFAULT_COLLECTIONS } from '../config/collections.ts'
import type { Config } from '../config/config.ts'
import { nearest } from '../config/issues.ts'
import { systemCode, UsageError } from '../errors.ts'
import { nextFires } from '../schedule/cron.ts'
import { assertNumbersOrNothing, assertOwnCopy, type Origin } from '../store/sqlite/publish/numbers.ts'
import { inspectPlace, numbersFile } from '../store/sqlite/publish/place.ts'
import { counted, shellWord } from '../text.ts'
import { type Finding, fail, ok, warn } from './finding.ts'
import { checkFolder } from './mirror.ts'

/** What a valid configuration holds, and names in it that look mistyped. */
export function checkConfigured({ file, organizations, collections }: Config): Finding[] {
  const lists = organizations.reduce((sum, organization) => sum + organization.collections.length, 0)
  const text = `${file}: ${counted(organizations.length, 'organization')}, ${counted(lists, 'list')}`
  return [ok('configuration', text), ...suspiciousNames(collections)]
}

/** Whether other users of this machine can read a token that is written in the file. */
export function checkReadable({ file, literalTokens }: Pick<Config, 'file' | 'literalTokens'>): Finding[] {
  const [name] = literalTokens
  const isReadable = ((statSync(file, { throwIfNoEntry: false })?.mode ?? 0) & 0o004) !== 0
  if (name === undefined || !isReadable) return []
  const more = literalTokens.length > 1 ? ` and ${literalTokens.length - 1} more` : ''
  const text = `${file} can be read by every user of this machine, and holds the token of ${name}${more}`
  const cure = `type: chmod o-rwx ${shellWord(file)}; or name a tokenFile or an environment variable instead`
  return [warn('configuration', text, cure)]
}

/** Collections whose names are close to a known one. */
export function suspiciousNames(collections: readonly { name: string }[]): Finding[] {
  return collections.flatMap(({ name }) => {
    const meant = nearest(name, DEFAULT_COLLECTIONS)
    if (meant === null || meant === name) return []
    const text = `the collection ${name} is not a known one, but its name is close to ${meant}, which is mirrored beside it`
    return warn('configuration', text, `is ${meant} meant? Then write ${meant} instead of ${name}`)
  })
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

/** The next times of each schedule, by the clock of its time zone. */
export function checkSchedules(
  config: { organizations: readonly { name: string; schedule: string }[]; timezone: string },
  now: number,
): Finding[] {
  const { organizations, timezone } = config
  const bySchedule = Map.groupBy(organizations, ({ schedule }) => schedule)
  return Array.from(bySchedule, ([schedule, users]) => {
    const [first] = users
    const who = users.length === 1 ? (first?.name ?? '') : counted(users.length, 'organization')
    const times = nextFires(schedule, timezone, now, 3)
    const text = `"${schedule}" of ${who}`
    if (times.length === 0)
      return warn('schedule', `${text} does not run within a year`, 'correct it, if that is not meant')
    const local = times.map((time) => localTime(time, timezone)).join(', ')
    return ok('schedule', `${text}: next ${local} (${timezone})`)
  })
}

function localTime(time: number, timeZone: string): string {
  const format = { timeZone, dateStyle: 'short', timeStyle: 'medium' } as const
  return new Intl.DateTimeFormat('sv-SE', format).format(time)
}

/** The shortest time between two of the next runs, in minutes; null if there are fewer than two. */
export function minutesBetween(schedule: string, timezone: string, now: number): number | null {
  const times = nextFires(schedule, timezone, now, 5)
  const gaps = times.slice(1).map((time, index) => time - (times[index] ?? time))
  return gaps.length === 0 ? null : Math.min(...gaps) / 60_000
}

const HTTP = 'http'

/** Whether the listener's port is free. A running daemon uses it, which is fine. */
export async function checkPort(
  { host, port }: { host: string; port: number },
  isDaemonRunning: boolean,
): Promise<Finding> {
  const shown = `port ${port} of ${host}`
  const server = createServer()
  try {
    await once(server.listen(port, host), 'listening')
    await once(server.close(), 'close')
    return ok(HTTP, `${shown} is free`)
  } catch (error) {
    const code = systemCode(error) ?? 'unknown error'
    if (code === 'EADDRINUSE' && isDaemonRunning) return ok(HTTP, `${shown} is in use, and a daemon runs`)
    return fail(HTTP, 2, `${shown} cannot be used (${code})`, 'choose another http.port or http.host')
  }
}

const PUBLISH = 'publish'

/** Whether copies can be published where the configuration says. `origin`: of the mirror; null while there is none. */
export function checkPublished(file: string, origin: Origin | null): Finding[] {
  const folder = checkFolder(PUBLISH, path.dirname(file))
  try {
    const place = inspectPlace(file)
    assertNumbersOrNothing(numbersFile(place.file))
    if (origin) assertOwnCopy(file, place, origin)
    return [folder]
  } catch (error) {
    if (error instanceof UsageError) return [folder, fail(PUBLISH, 2, error.message, null)]
    // A folder that cannot be read: `checkFolder` has reported it.
    if (systemCode(error) !== null) return [folder]
    throw error
  }
}
