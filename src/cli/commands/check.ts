import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/yaml.ts'
import { ERRORS, KnownError, MirrorError, UsageError, worstExitCode } from '../../errors.ts'
import { nextFires } from '../../schedule/cron.ts'
import { impossibleCollections } from '../../store/core/tables.ts'
import { counted, jobName, printable } from '../../text.ts'
import { readConfig } from '../configuration.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { openLog } from '../output/log.ts'
import type { Globals, Runtime } from '../runtime.ts'
import { ALL, type ConfiguredJob, selectJobs } from '../selection.ts'
import { openSession, type Session } from '../session.ts'

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
export async function run(runtime: Runtime, globals: Globals): Promise<number> {
  const { stdout, signal } = runtime
  const findings = await findAll(runtime, globals)
  for (const { name, message, exitCode } of findings) {
    const state = exitCode === 0 ? 'ok  ' : 'fail'
    stdout.write(`${state}  ${printable(name, 60).padEnd(24)}  ${printable(message, 1000)}\n`)
  }
  return signal.aborted ? exitCodeOfStop(signal) : worstExitCode(findings.map(({ exitCode }) => exitCode))
}

async function findAll(runtime: Runtime, globals: Globals): Promise<Finding[]> {
  let config: Config
  try {
    config = readConfig(runtime, globals, 'resolve')
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.message.split('\n').map((line) => finding('configuration', line, 2))
  }
  const { file, organizations } = config
  const lists = organizations.reduce((sum, organization) => sum + organization.collections.length, 0)
  const size = `${counted(organizations.length, 'organization')}, ${counted(lists, 'list')}`
  return [
    finding('configuration', `${file}: ${size}`),
    ...schedules(config, runtime.now()),
    ...(await databaseAndLists(config, runtime, globals)),
  ]
}

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

/** For all requests together: a rate limit may ask for long waits. */
const REQUESTS_MS = 120_000

/** A refused token is held, as in any run, so the mirror is made if there is none. */
async function databaseAndLists(configured: Config, runtime: Runtime, globals: Globals): Promise<Finding[]> {
  // One try: a user waits for the answer.
  const config = { ...configured, retry: { ...configured.retry, attempts: 1 } }
  const jobs = selectJobs(config, ALL)
  const { logger } = await openLog({ ...globals, logLevel: 'error' }, runtime)
  try {
    const session = await openSession({ config, runtime, logger })
    try {
      const fault = session.writeFault()
      const database = finding(
        'database',
        fault ?? `${config.database} can be written`,
        fault === null ? 0 : 4,
      )
      const impossible = await session.read((dialect) => impossibleCollections(dialect, config.collections))
      if (impossible.length > 0)
        return [database, ...impossible.map((text) => finding('configuration', text, 2))]
      const stop = AbortSignal.any([runtime.signal, AbortSignal.timeout(REQUESTS_MS)])
      const lists = await Promise.all(jobs.map((job) => askList(job, session, stop)))
      return [database, ...toldOnce(lists)]
    } finally {
      await session.close()
    }
  } catch (error) {
    if (error instanceof UsageError) return [finding('database', error.message, 2)]
    if (error instanceof MirrorError) return [finding('database', error.message, 4)]
    throw error
  }
}

/** Asks for the first page of a list, once, through the rate limiter and the hold of its token. */
async function askList(job: ConfiguredJob, session: Session, stop: AbortSignal): Promise<Finding> {
  const name = jobName(job)
  const source = await session.source(job)
  try {
    const refusal = await source.refusal()
    if (refusal) return failed(name, refusal, 'not asked: ')
    const { total, lastPage, items } = await source.fetchPage(1, () => {}, stop)
    const size =
      total === null ? `${counted(items.length, 'item')} on the first page` : counted(total, 'item')
    return finding(name, lastPage === null ? size : `${size} on ${counted(lastPage, 'page')}`)
  } catch (error) {
    if (stop.aborted) return finding(name, 'no answer in time: the rate limit may ask for a longer wait', 1)
    if (error instanceof KnownError) return failed(name, error)
    throw error
  }
}

function failed(name: string, { code, message, shared }: KnownError, before = ''): Finding {
  const { exitCode, cure } = ERRORS[code]
  // A token file that cannot be read is a matter of configuration; one page cannot show that the mirror and the API differ.
  const exits = code === 'CONFIGURATION' ? 2 : exitCode === 5 ? 1 : exitCode
  const text = before + message.replace(`${name} page 1: `, '')
  return finding(name, cure === undefined ? text : `${text}; ${cure}`, exits, shared || text)
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
