import fs from 'node:fs'
import path from 'node:path'
import type { Config } from '../config/config.ts'
import { ERRORS, InterruptedError, type KnownError, systemCode } from '../errors.ts'
import { nextFires } from '../schedule/cron.ts'
import type { Job, PageSource } from '../sync/types.ts'
import { counted, inWords, jobName, shellWord } from '../text.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

/** What the configuration holds, once it is valid, and whether its tokens can be read, by us and not by every user. */
export function checkConfigured({ file, organizations, literalTokens }: Config): Finding[] {
  const lists = organizations.reduce((sum, organization) => sum + organization.collections.length, 0)
  const text = `${file}: ${counted(organizations.length, 'organization')}, ${counted(lists, 'list')}`
  const unread = organizations.flatMap(({ name, readToken }) => {
    try {
      readToken()
      return []
    } catch (error) {
      return [fail(`token ${name}`, 2, error instanceof Error ? error.message : 'cannot be read')]
    }
  })
  return [ok('configuration', text), ...checkReadable(file, literalTokens), ...unread]
}

function checkReadable(file: string, [name, ...others]: readonly string[]): Finding[] {
  const mode = fs.statSync(file, { throwIfNoEntry: false })?.mode ?? 0
  if (name === undefined || (mode & 0o004) === 0) return []
  const more = others.length > 0 ? ` and ${others.length} more` : ''
  const text = `${file} can be read by every user of this machine, and holds the token of ${name}${more}`
  const cure = `type: chmod o-rwx ${shellWord(file)}; or name a tokenFile or an environment variable instead`
  return [warn('configuration', text, cure)]
}

/** The next times of each schedule, by the clock of its time zone. */
export function checkSchedules(
  { organizations, timezone }: Pick<Config, 'organizations' | 'timezone'>,
  now: number,
): Finding[] {
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: timezone,
    dateStyle: 'short',
    timeStyle: 'medium',
  })
  const bySchedule = Map.groupBy(organizations, ({ schedule }) => schedule)
  return Array.from(bySchedule, ([schedule, users]) => {
    const who = users.length === 1 ? (users[0]?.name ?? '') : counted(users.length, 'organization')
    const times = nextFires(schedule, timezone, now, 3).map((time) => format.format(time))
    return times.length === 0
      ? warn(
          'schedule',
          `"${schedule}" of ${who} does not run within a year`,
          'correct it, if that is not meant',
        )
      : ok('schedule', `"${schedule}" of ${who}: next ${times.join(', ')} (${timezone})`)
  })
}

/** Whether a copy can be published at this place, by replacing the file there. `mounts`: /proc/self/mountinfo. */
export function checkPublish(file: string, mounts: string): Finding[] {
  const folder = path.dirname(file)
  const points = mounts.split('\n').map((line) => unescaped(line.split(' ')[4] ?? ''))
  if (points.includes(file)) {
    const cure = `mount its folder ${folder} instead: a mounted file cannot be replaced`
    return [fail('publish', 2, `${file} is mounted as a single file`, cure)]
  }
  try {
    if (fs.existsSync(folder)) fs.accessSync(folder, fs.constants.W_OK | fs.constants.X_OK)
    return []
  } catch (error) {
    const text = `this user may not write to the folder ${folder} (${systemCode(error)})`
    return [fail('publish', 2, text, 'name a file in a folder that it may write to')]
  }
}

/** The kernel writes a space of a path as \040. */
function unescaped(text: string): string {
  return text.replaceAll(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

/** Asks for the first page of a list, once, through the rate limiter and the hold of its token. */
export async function askList(
  job: Job,
  openSource: () => Promise<PageSource>,
  limit: AbortSignal,
): Promise<Finding> {
  const name = jobName(job)
  let waitsFor = 'its turn'
  const source = await openSource()
  try {
    const refusal = await source.refusal()
    if (refusal) return refused(name, refusal, 'not asked: ')
    const { total, lastPage, items } = await source.fetchPage(
      1,
      (event) => {
        waitsFor = event.kind === 'wait' ? event.reason : 'an answer'
      },
      limit,
    )
    const size =
      total === null ? `${counted(items.length, 'item')} on the first page` : counted(total, 'item')
    return ok(name, lastPage === null ? size : `${size} on ${counted(lastPage, 'page')}`)
  } catch (error) {
    return limit.aborted
      ? warn(name, `not finished in time: it waited for ${waitsFor}`)
      : refused(name, error, '')
  } finally {
    await source.close()
  }
}

function refused(name: string, error: unknown, before: string): Finding {
  const { code, message } = error as KnownError
  if (error instanceof InterruptedError) return warn(name, 'stopped')
  const { exitCode, cure = null } = ERRORS[code]
  // One page cannot show that the mirror and the API differ.
  const exits = code === 'CONFIGURATION' ? 2 : exitCode === 5 ? 1 : exitCode
  return fail(name, exits, before + message.replace(`${name} page 1: `, ''), cure)
}

/** A larger difference is not due to the time that the answer took. */
const SKEW_MS = 60_000

/** The clock of this machine against the server's `Date`. */
export function checkClock(date: string | undefined, now: number): Finding[] {
  const skew = now - Date.parse(date ?? '')
  if (Number.isNaN(skew)) return []
  if (Math.abs(skew) <= SKEW_MS) return [ok('clock', "agrees with the server's")]
  const text = `is ${inWords(Math.abs(skew))} ${skew > 0 ? 'ahead of' : 'behind'} the server's`
  return [warn('clock', text, "set this machine's clock (NTP): schedules and as_of go by it")]
}
