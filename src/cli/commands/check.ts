import fs from 'node:fs'
import path from 'node:path'
import { createHttpGet, type HttpGet } from '../../api/http.ts'
import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/problems.ts'
import { ERRORS, KnownError, MirrorError, systemCode, UsageError, worstExitCode } from '../../errors.ts'
import { nextFires } from '../../schedule/cron.ts'
import { impossibleCollections } from '../../store/core/tables.ts'
import { counted, inWords, jobName, printable, shellWord } from '../../text.ts'
import { readConfig, USER_AGENT as userAgent } from '../config-file.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { kindOf } from '../mirror.ts'
import { createLogger } from '../output/log.ts'
import type { Globals, Runtime } from '../runtime.ts'
import { type SelectedJob, selectJobs } from '../selection.ts'
import { openSession, type Session } from '../session.ts'

/** What was found of one thing: of `database`, `token acme`, `acme orders`. */
interface Finding {
  name: string
  state: 'ok' | 'warn' | 'fail'
  /** What is so, and what to do. */
  message: string
  /** What a run would exit with because of it. */
  exitCode: number
}

const ok = (name: string, message: string): Finding => ({ name, state: 'ok', message, exitCode: 0 })
const warn = (name: string, message: string): Finding => ({ name, state: 'warn', message, exitCode: 0 })
const fail = (name: string, exitCode: number, message: string): Finding => ({
  name,
  state: 'fail',
  message,
  exitCode,
})

/** `check`: what would keep runs from succeeding, and what to do about it. Sends one request for each list, and opens the database as a run does. */
export async function run(runtime: Runtime, globals: Globals): Promise<number> {
  const { stdout, signal } = runtime
  const findings = await findAll(runtime, globals)
  for (const { name, state, message } of findings)
    stdout.write(`${state.padEnd(4)}  ${printable(name, 60).padEnd(24)}  ${printable(message, 1000)}\n`)
  return signal.aborted ? exitCodeOfStop(signal) : worstExitCode(findings.map(({ exitCode }) => exitCode))
}

async function findAll(runtime: Runtime, globals: Globals): Promise<Finding[]> {
  let config: Config
  try {
    config = readConfig(runtime, globals, 'resolve')
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.message.split('\n').map((line) => fail('configuration', 2, line))
  }
  return [
    ...checkConfiguration(config),
    ...checkSchedules(config, runtime.now()),
    ...(config.publish === null ? [] : checkPublish(config.publish, readMounts())),
    ...(await checkDatabaseAndLists(config, runtime)),
  ]
}

/** What a valid configuration holds, and whether its tokens can be read, by us and not by every user. */
function checkConfiguration({ file, organizations, literalTokens }: Config): Finding[] {
  const lists = organizations.reduce((sum, organization) => sum + organization.collections.length, 0)
  const found = [
    ok(
      'configuration',
      `${file}: ${counted(organizations.length, 'organization')}, ${counted(lists, 'list')}`,
    ),
  ]
  const mode = fs.statSync(file, { throwIfNoEntry: false })?.mode ?? 0
  const [name, ...others] = literalTokens
  if (name !== undefined && (mode & 0o004) !== 0) {
    const whose = others.length > 0 ? `${name} and ${others.length} more` : name
    const cure = `type: chmod o-rwx ${shellWord(file)}; or name a tokenFile or an environment variable instead`
    found.push(
      warn(
        'configuration',
        `${file} can be read by every user of this machine, and holds the token of ${whose}; ${cure}`,
      ),
    )
  }
  for (const organization of organizations) {
    try {
      organization.readToken()
    } catch (error) {
      found.push(
        fail(`token ${organization.name}`, 2, error instanceof Error ? error.message : 'cannot be read'),
      )
    }
  }
  return found
}

/** The next times of each schedule, by the clock of its time zone. */
function checkSchedules({ organizations, timezone }: Config, now: number): Finding[] {
  const style = { dateStyle: 'short', timeStyle: 'medium', timeZone: timezone } as const
  const format = new Intl.DateTimeFormat('sv-SE', style)
  const bySchedule = Map.groupBy(organizations, ({ schedule }) => schedule)
  return Array.from(bySchedule, ([schedule, users]) => {
    const who = users.length === 1 ? users[0]?.name : counted(users.length, 'organization')
    const times = nextFires(schedule, timezone, now, 3).map((time) => format.format(time))
    return times.length > 0
      ? ok('schedule', `"${schedule}" of ${who}: next ${times.join(', ')} (${timezone})`)
      : warn(
          'schedule',
          `"${schedule}" of ${who} does not run within a year; correct it, if that is not meant`,
        )
  })
}

/** Whether a copy can be published at this place, by replacing the file there. `mounts`: /proc/self/mountinfo. */
export function checkPublish(file: string, mounts: string): Finding[] {
  const folder = path.dirname(file)
  // The kernel writes a space of a path as \040.
  const points = mounts
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .map((point) =>
      point.replaceAll(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    )
  if (points.includes(file))
    return [
      fail(
        'publish',
        2,
        `${file} is mounted as a single file, which cannot be replaced; mount its folder ${folder} instead`,
      ),
    ]
  try {
    if (fs.existsSync(folder)) fs.accessSync(folder, fs.constants.W_OK | fs.constants.X_OK)
    return []
  } catch (error) {
    const why = `this user may not write to the folder ${folder} (${systemCode(error)})`
    return [fail('publish', 2, `${why}; name a file in a folder that it may write to`)]
  }
}

function readMounts(): string {
  const file = '/proc/self/mountinfo'
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : ''
}

/** For all requests together: a rate limit may ask for long waits. */
const REQUESTS_MS = 120_000

/** A refused token is held, as in any run, so the mirror is made if there is none. */
async function checkDatabaseAndLists(config: Config, runtime: Runtime): Promise<Finding[]> {
  const { now, signal, stderr } = runtime
  const { timeout: timeoutMs, maxResponseBytes } = config.api
  const get = createHttpGet({ timeoutMs, maxResponseBytes, userAgent })
  let clock: Finding[] = []
  const exchange: HttpGet = async (...request) => {
    const response = await get(...request)
    clock = checkClock([response.headers.date].flat()[0], now())
    return response
  }
  try {
    const session = await openSession({
      // One try: a user waits for the answer.
      config: { ...config, retry: { ...config.retry, attempts: 1 } },
      runtime,
      logger: await createLogger({ level: 'error', destination: stderr, pretty: false, color: false }),
      exchange,
    })
    try {
      const { writeFault } = await kindOf(config)
      const fault = writeFault({ database: config.database, config })
      const database =
        fault === null ? ok('database', `${config.database} can be written`) : fail('database', 4, fault)
      const impossible = await session.run((dialect) => impossibleCollections(dialect, config.collections))
      if (impossible.length > 0)
        return [database, ...impossible.map((text) => fail('configuration', 2, text))]
      const stop = AbortSignal.any([signal, AbortSignal.timeout(REQUESTS_MS)])
      const jobs = selectJobs(config, { org: [], collection: [] })
      const lists = await Promise.all(jobs.map((selected) => askList(selected, session, stop)))
      return [database, ...toldOnce(lists), ...clock]
    } finally {
      await session.close()
    }
  } catch (error) {
    if (error instanceof UsageError) return [fail('database', 2, error.message)]
    if (error instanceof MirrorError) return [fail('database', 4, error.message)]
    throw error
  }
}

/** Asks for the first page of a list, once, through the rate limiter and the hold of its token. */
async function askList(
  { organization, job }: SelectedJob,
  session: Session,
  stop: AbortSignal,
): Promise<Finding> {
  const name = jobName(job)
  let waitsFor = 'its turn'
  const source = await session.source(organization, job)
  try {
    const refusal = await source.refusal()
    if (refusal) return failed(name, refusal, 'not asked: ')
    const { total, lastPage, items } = await source.fetchPage(
      1,
      (event) => {
        waitsFor = event.kind === 'wait' ? event.reason : 'an answer'
      },
      stop,
    )
    const size =
      total === null ? `${counted(items.length, 'item')} on the first page` : counted(total, 'item')
    return ok(name, lastPage === null ? size : `${size} on ${counted(lastPage, 'page')}`)
  } catch (error) {
    if (stop.aborted) return warn(name, `not finished in time: it waited for ${waitsFor}`)
    if (error instanceof KnownError) return failed(name, error)
    throw error
  } finally {
    await source.close()
  }
}

function failed(name: string, { code, message }: KnownError, before = ''): Finding {
  const { exitCode, cure } = ERRORS[code]
  // A token file that cannot be read is a matter of configuration; one page cannot show that the mirror and the API differ.
  const exits = code === 'CONFIGURATION' ? 2 : exitCode === 5 ? 1 : exitCode
  const text = before + message.replace(`${name} page 1: `, '')
  return fail(name, exits, cure === undefined ? text : `${text}; ${cure}`)
}

/** One cause is told once: of lists that failed alike, the first stands for all. */
function toldOnce(findings: readonly Finding[]): Finding[] {
  const alike = Map.groupBy(findings, ({ state, name, message }) => (state === 'ok' ? name : message))
  return Array.from(alike.values(), ([first, ...others]) => {
    const one = first as Finding
    return others.length === 0
      ? one
      : { ...one, name: `${one.name} and ${counted(others.length, 'more list')}` }
  })
}

/** A larger difference is not due to the time that the answer took. */
const SKEW_MS = 60_000

/** The clock of this machine against the server's `Date`. */
function checkClock(date: string | undefined, now: number): Finding[] {
  const skew = now - Date.parse(date ?? '')
  if (Number.isNaN(skew)) return []
  if (Math.abs(skew) <= SKEW_MS) return [ok('clock', "agrees with the server's")]
  const text = `is ${inWords(Math.abs(skew))} ${skew > 0 ? 'ahead of' : 'behind'} the server's`
  return [warn('clock', `${text}; set this machine's clock (NTP): schedules and as_of go by it`)]
}
