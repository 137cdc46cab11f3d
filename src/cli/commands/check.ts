import { createHttpGet, type HttpGet, openConnections } from '../../api/http.ts'
import { allowedPerMinute, budgetNow, msToSend } from '../../api/rate/decision.ts'
import {
  checkConfigured,
  checkPort,
  checkPublished,
  checkReadable,
  checkSchedules,
  checkTokens,
  minutesBetween,
} from '../../check/configured.ts'
import { exitCodeOfFindings, type Finding, fail, findingLine, ok, warn } from '../../check/finding.ts'
import { type Asked, askList, checkClock, rateText } from '../../check/lists.ts'
import { findingOf } from '../../check/mirror.ts'
import { checkNetwork } from '../../check/network.ts'
import type { Config } from '../../config/config.ts'
import { REFRESH_DEFAULTS } from '../../config/organizations.ts'
import { sendPing } from '../../ping/send.ts'
import { walkAdvice } from '../../report/advice.ts'
import type { Status } from '../../report/status.ts'
import type { Page } from '../../sync/types.ts'
import { pasteable } from '../../text.ts'
import { readConfig, USER_AGENT as userAgent } from '../config-file.ts'
import { hostOf } from '../configured-pings.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { kindOf } from '../mirror.ts'
import { createLogger } from '../output/log.ts'
import { jsonText } from '../output/results.ts'
import { readStatus } from '../read-status.ts'
import { type Globals, type Runtime, typedConfig } from '../runtime.ts'
import { selectJobs } from '../selection.ts'
import { openSession } from '../session.ts'

interface Options {
  offline?: boolean
  json?: boolean
}

/**
 * `check`: what would keep runs from succeeding, and what to do about it. Online, it sends one request for each list,
 * and one ping to each address.
 */
export async function run(runtime: Runtime, globals: Globals, options: Options): Promise<number> {
  const found = await findAll(runtime, globals, options.offline === true)
  const findings = pasteable(found, typedConfig(globals))
  const { signal, stdout } = runtime
  const exitCode = signal.aborted ? exitCodeOfStop(signal) : exitCodeOfFindings(findings)
  const report = { version: 1, exit_code: exitCode, checks: findings }
  stdout.write(options.json ? jsonText(report, '') : findings.map((one) => `${findingLine(one)}\n`).join(''))
  return exitCode
}

async function findAll(runtime: Runtime, globals: Globals, isOffline: boolean): Promise<Finding[]> {
  let config: Config
  try {
    config = readConfig(runtime, globals, 'resolve')
  } catch (error) {
    if (!(error instanceof Error && error.name === 'ConfigError')) throw error
    return error.message.split('\n').map((line) => fail('configuration', 2, line, null))
  }
  // Online, opening the session finds that out.
  const baseUrl = isOffline ? config.api.baseUrl : null
  const kind = await kindOf(config)
  const mirror = await kind.check(config, runtime, baseUrl)
  // The finding of the mirror says why it cannot be read.
  const status = await readStatus(runtime, { database: config.database, config }).catch(() => null)
  // With a mirror on a server, the daemon may run on another machine, and this machine's port be free.
  const isDaemonHere = !config.postgres && status !== null && status.daemon.running !== false
  const offline = [
    ...checkConfigured(config),
    ...checkReadable(config),
    ...checkTokens(config),
    ...checkSchedules(config, runtime.now()),
    ...mirror.findings,
    ...findingsOfStatus(status),
    ...(config.publish === null ? [] : checkPublished(config.publish, mirror.origin)),
    ...(config.http === null ? [] : [await checkPort(config.http, isDaemonHere)]),
  ]
  if (isOffline) return offline
  const online = [...offline, ...(await checkApi(config, runtime))]
  const isFailing = status?.jobs.some(({ failing_since: since }) => since !== null) === true
  const isWell = !isFailing && exitCodeOfFindings(online) === 0
  return [...online, ...(await checkPings(config, isWell, runtime))]
}

/** What `status` advises, once lists were read. */
function findingsOfStatus(status: Status | null): Finding[] {
  const { advice = [], refreshes = [], notes = [] } = status ?? {}
  return [
    ...refreshes.map((text) => ok('refreshes', text)),
    ...advice.map((text) => warn('advice', text)),
    ...notes.map((text) => warn('columns', text)),
  ]
}

/** For all requests together: a rate limit may ask for long waits. */
const REQUESTS_MS = 120_000

/** Tries the API: its name, its certificate, and each list. A refused token is held, as in any run, so the mirror is made if there is none. */
async function checkApi(config: Config, runtime: Runtime): Promise<Finding[]> {
  const { now, signal } = runtime
  const reached = await checkNetwork(config.api.baseUrl, now(), signal)
  if (reached.state === 'fail') return [reached, warn('lists', 'not asked, since the API cannot be reached')]
  const dates: { date: string | undefined; at: number }[] = []
  const connections = openConnections()
  const { timeout: timeoutMs, maxResponseBytes } = config.api
  const get = createHttpGet({ timeoutMs, maxResponseBytes, userAgent }, connections)
  const exchange: HttpGet = async (url, headers, stop) => {
    const response = await get(url, headers, stop)
    dates.push({ date: [response.headers.date].flat()[0], at: now() })
    return response
  }
  try {
    const asked = await askAll(config, runtime, exchange)
    const [first] = dates
    const clock = first ? checkClock(first.date, first.at) : null
    return [
      reached,
      ...asked.map(({ finding }) => finding),
      ...(clock ? [clock] : []),
      ...findingsOnRate(config, asked, now()),
    ]
  } catch (error) {
    return [reached, findingOf(error), warn('lists', 'not asked, since the mirror cannot be used')]
  } finally {
    connections.close()
  }
}

/** A list, and the name of the rate budget that it is read with. */
interface AskedList extends Asked {
  budget: string
}

async function askAll(config: Config, runtime: Runtime, exchange: HttpGet): Promise<AskedList[]> {
  const logger = await createLogger({
    level: 'error',
    destination: runtime.stderr,
    pretty: false,
    color: false,
  })
  // One try: a user waits for the answer.
  const once = { ...config, retry: { ...config.retry, attempts: 1 } }
  const session = await openSession({
    config: once,
    runtime,
    logger,
    userAgent,
    exchange,
    tryHeldTokens: false,
  })
  const limit = AbortSignal.any([runtime.signal, AbortSignal.timeout(REQUESTS_MS)])
  try {
    const jobs = selectJobs(config, { org: [], collection: [] })
    return await Promise.all(
      jobs.map(async ({ organization, job }) => {
        const asked = await askList(job, () => session.source(organization, job), limit)
        return { ...asked, budget: session.budgetOf(organization) }
      }),
    )
  } finally {
    await session.close()
  }
}

/** What full walks cost of the rate limit. The lists of one token share one, unless `rateLimit.scope` says otherwise. */
function findingsOnRate(
  { rateLimit, organizations, timezone }: Config,
  asked: readonly AskedList[],
  now: number,
): Finding[] {
  const answered = asked.flatMap(({ job, page, budget }) => (page ? [{ job, page, budget }] : []))
  const groups = Map.groupBy(answered, ({ budget }) => budget)
  // The busiest budget decides.
  const [group] = [...groups.values()].toSorted((a, b) => pagesOf(b) - pagesOf(a))
  if (!group) return []
  const announced = group.find(({ page }) => page.announcedLimit !== null)?.page.announcedLimit ?? null
  const perMinute = allowedPerMinute(announced, rateLimit)
  const seen = ok('rate limit', rateText(announced, perMinute))
  if (perMinute === null) return [seen]
  const [configured = null] = organizations
    .flatMap(({ schedule }) => {
      const minutes = minutesBetween(schedule, timezone, now)
      return minutes === null ? [] : { schedule, minutes }
    })
    .toSorted((a, b) => a.minutes - b.minutes)
  const requests = pagesOf(group)
  const budgets = group.flatMap(({ page }) => budgetNow(page, rateLimit, group.length) ?? [])
  // The last answer, which left the fewest requests, shows the budget best.
  const walksMs = Math.max(...budgets.map((budget) => msToSend(requests, budget)))
  const id = group[0]?.job.organization.id
  const own = organizations.find((organization) => organization.id === id)?.refresh
  // Where refreshes are turned off, what they would be by default.
  const refresh = own || REFRESH_DEFAULTS
  const facts = { lists: group.length, requests, walksMs, perMinute, configured, refresh }
  const { isTight, walks, refreshes, schedule } = walkAdvice(facts)
  const tight = `comes again before full walks can end: ${walks}`
  const walk = isTight ? warn('schedule', tight, `set schedule: "${schedule}"`) : ok('schedule', walks)
  return [seen, walk, ok('refresh', refreshes)]
}

function pagesOf(group: readonly { page: Page }[]): number {
  return group.reduce((sum, { page }) => sum + (page.lastPage ?? 1), 0)
}

/** Milliseconds. */
const PINGED_WITHIN_MS = 10_000

/**
 * Sends one ping to each address, and reports what came back. `isWell`: whether no list is failing. If one is, the ping says `fail`: a success
 * would end its alarm.
 */
async function checkPings(
  { organizations }: Pick<Config, 'organizations'>,
  isWell: boolean,
  { signal }: Pick<Runtime, 'signal'>,
): Promise<Finding[]> {
  const addresses = new Set(organizations.flatMap(({ ping }) => ping() ?? []))
  const how = isWell ? '' : ' (fail: something is not well)'
  return Promise.all(
    Array.from(addresses, async (address) => {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(PINGED_WITHIN_MS)])
      try {
        const kind = isWell ? 'success' : 'fail'
        await sendPing(address, kind, 'admin-mirror: a test by "check"\n', { userAgent, signal: limit })
        return ok('ping', `${hostOf(address)} took a test ping${how}`)
      } catch (error) {
        const reason = error instanceof Error ? error.message : 'unknown'
        const cure = 'look at ping in the configuration, and at the network'
        return warn('ping', `${hostOf(address)} did not take a test ping: ${reason}`, cure)
      }
    }),
  )
}
