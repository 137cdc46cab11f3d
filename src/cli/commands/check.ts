import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/yaml.ts'
import {
  ERRORS,
  type KnownError,
  MirrorError,
  toKnownError,
  UsageError,
  worstExitCode,
} from '../../errors.ts'
import { nextFires } from '../../schedule/cron.ts'
import { counted, jobName, printable } from '../../text.ts'
import { readConfig } from '../configuration.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import type { Invocation } from '../runtime.ts'
import { type ConfiguredJob, selectJobs } from '../selection.ts'
import { inSession, type Session } from '../session.ts'

/** What was found of one thing: of `database`, `schedule`, `acme orders`. */
interface Finding {
  name: string
  /** What is so, and what to do. */
  message: string
  /** What a run would exit with because of it; 0: nothing is wrong. */
  exitCode: number
  /** What lists that failed alike have in common. */
  fault: string
}

const finding = (name: string, message: string, exitCode = 0, fault = message): Finding => ({
  name,
  message,
  exitCode,
  fault,
})

/** `check`: what would keep runs from succeeding, and what to do about it. */
export async function run(runtime: Invocation): Promise<number> {
  const { stdout, signal } = runtime
  const exitCodes: number[] = []
  const tell: Tell = (findings) => {
    for (const { name, message, exitCode } of findings) {
      const state = exitCode === 0 ? 'ok  ' : 'fail'
      stdout.write(`${state}  ${printable(name, 60).padEnd(24)}  ${printable(message, 1000)}\n`)
      exitCodes.push(exitCode)
    }
  }
  await findAll(runtime, tell)
  return signal.aborted ? exitCodeOfStop(signal) : worstExitCode(exitCodes)
}

type Tell = (findings: readonly Finding[]) => void

async function findAll(runtime: Invocation, tell: Tell): Promise<void> {
  let config: Config
  try {
    config = readConfig(runtime, 'resolve')
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return tell(error.message.split('\n').map((line) => finding('configuration', line, 2)))
  }
  const jobs = selectJobs(config)
  const size = `${counted(config.organizations.length, 'organization')}, ${counted(jobs.length, 'list')}`
  tell([finding('configuration', `${config.file}: ${size}`), ...schedules(config, runtime.now())])
  try {
    await findInMirror(runtime, config, jobs, tell)
  } catch (error) {
    if (error instanceof UsageError) tell([finding('database', error.message, 2)])
    else if (error instanceof MirrorError) tell([finding('database', error.message, 4)])
    else throw error
  }
}

async function findInMirror(
  runtime: Invocation,
  configured: Config,
  jobs: readonly ConfiguredJob[],
  tell: Tell,
): Promise<void> {
  // One try: a user waits for the answer.
  const config = { ...configured, publish: null, retry: { ...configured.retry, attempts: 1 } }
  const quiet = { ...runtime, globals: { ...runtime.globals, quiet: true } }
  await inSession(quiet, { config }, async (session) => {
    const fault = await session.probe()
    tell([finding('database', fault ?? `${config.database} can be written`, fault === null ? 0 : 4)])
    tell(session.refusals.map(({ message }) => finding('configuration', message, 2)))
    if (session.refusals.length > 0) return
    const stop = AbortSignal.any([runtime.signal, AbortSignal.timeout(REQUESTS_MS)])
    tell(toldOnce(await Promise.all(jobs.map((job) => askList(job, session, stop)))))
  })
}

/** For all requests together: a rate limit may ask for long waits. */
const REQUESTS_MS = 120_000

/** The next times of each schedule, by the clock of its time zone. */
function schedules({ organizations, timezone }: Config, now: number): Finding[] {
  const style = { dateStyle: 'short', timeStyle: 'medium', timeZone: timezone } as const
  const format = new Intl.DateTimeFormat('sv-SE', style)
  const bySchedule = Map.groupBy(organizations, ({ schedule }) => schedule)
  return Array.from(bySchedule, ([schedule, users]) => {
    const who = users.length === 1 ? users[0]?.name : counted(users.length, 'organization')
    const times = nextFires(schedule, timezone, now, 3).map((time) => format.format(time))
    const next = times.join(', ') || 'never'
    return finding('schedule', `"${schedule}" of ${who}: next ${next} (${timezone})`)
  })
}

/** Asks for the first page of a list, once, through the rate limiter and the hold of its token. */
async function askList(job: ConfiguredJob, session: Session, stop: AbortSignal): Promise<Finding> {
  const name = jobName(job)
  const source = await session.source(job)
  try {
    const refusal = await source.refusal()
    if (refusal) return failed(name, refusal)
    const { total, lastPage, items } = await source.fetchPage(1, () => {}, stop)
    const size =
      total === null ? `${counted(items.length, 'item')} on the first page` : counted(total, 'item')
    return finding(name, lastPage === null ? size : `${size} on ${counted(lastPage, 'page')}`)
  } catch (error) {
    if (stop.aborted)
      return finding(name, 'stopped before an answer came; the rate limit may ask for longer waits', 1)
    return failed(name, toKnownError(error))
  }
}

function failed(name: string, { code, message, shared }: KnownError): Finding {
  const text = message.replace(`${name} page 1: `, '')
  // A token file that cannot be read is a matter of configuration.
  return finding(name, text, code === 'CONFIGURATION' ? 2 : ERRORS[code].exitCode, shared || text)
}

/** One cause is told once: of lists that failed alike, the first stands for all. */
function toldOnce(findings: readonly Finding[]): Finding[] {
  const alike = Map.groupBy(findings, ({ exitCode, name, fault }) => (exitCode === 0 ? name : fault))
  return Array.from(alike.values(), ([first, ...others]) => {
    const one = first as Finding
    const more = others.length === 0 ? '' : ` and ${counted(others.length, 'more list')}`
    return { ...one, name: one.name + more }
  })
}
