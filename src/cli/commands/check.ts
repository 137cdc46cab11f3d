import fs from 'node:fs'
import { createHttpGet, type HttpGet } from '../../api/http.ts'
import { askList, checkClock, checkConfigured, checkPublish, checkSchedules } from '../../check/checks.ts'
import { type Finding, fail, findingLine, ok, toldOnce } from '../../check/finding.ts'
import type { Config } from '../../config/config.ts'
import { MirrorError, UsageError, worstExitCode } from '../../errors.ts'
import { impossibleCollections } from '../../store/core/collections.ts'
import { counted } from '../../text.ts'
import { readConfig, USER_AGENT as userAgent } from '../config-file.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { kindOf } from '../mirror.ts'
import { createLogger } from '../output/log.ts'
import type { Globals, Runtime } from '../runtime.ts'
import { selectJobs } from '../selection.ts'
import { openSession } from '../session.ts'

/** `check`: what would keep runs from succeeding, and what to do about it. Sends one request for each list, and opens the database as a run does. */
export async function run(runtime: Runtime, globals: Globals): Promise<number> {
  const { signal, stdout } = runtime
  const findings = await findAll(runtime, globals)
  stdout.write(findings.map((finding) => `${findingLine(finding)}\n`).join(''))
  return signal.aborted ? exitCodeOfStop(signal) : worstExitCode(findings.map(({ exitCode }) => exitCode))
}

async function findAll(runtime: Runtime, globals: Globals): Promise<Finding[]> {
  let config: Config
  try {
    config = readConfig(runtime, globals, 'resolve')
  } catch (error) {
    if (!(error instanceof Error && error.name === 'ConfigError')) throw error
    return error.message.split('\n').map((line) => fail('configuration', 2, line))
  }
  const { publish } = config
  return [
    ...checkConfigured(config),
    ...checkSchedules(config, runtime.now()),
    ...(publish === null ? [] : checkPublish(publish, readMounts())),
    ...(await checkDatabaseAndLists(config, runtime)),
  ]
}

const MOUNTS = '/proc/self/mountinfo'

function readMounts(): string {
  return fs.existsSync(MOUNTS) ? fs.readFileSync(MOUNTS, 'utf8') : ''
}

/** For all requests together: a rate limit may ask for long waits. */
const REQUESTS_MS = 120_000

/** A refused token is held, as in any run, so the mirror is made if there is none. */
async function checkDatabaseAndLists(config: Config, runtime: Runtime): Promise<Finding[]> {
  const { now, signal, stderr } = runtime
  const { timeout: timeoutMs, maxResponseBytes } = config.api
  const get = createHttpGet({ timeoutMs, maxResponseBytes, userAgent })
  let clock: Finding[] = []
  const exchange: HttpGet = async (url, headers, stop) => {
    const response = await get(url, headers, stop)
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
      const fault = (await kindOf(config)).writeFault({ database: config.database, config })
      const database =
        fault === null ? ok('database', `${config.database} can be written`) : fail('database', 4, fault)
      const impossible = await session.run((dialect) => impossibleCollections(dialect, config.collections))
      if (impossible.length > 0)
        return [database, ...impossible.map((text) => fail('configuration', 2, text))]
      const limit = AbortSignal.any([signal, AbortSignal.timeout(REQUESTS_MS)])
      const lists = await Promise.all(
        selectJobs(config, { org: [], collection: [] }).map(({ organization, job }) =>
          askList(job, () => session.source(organization, job), limit),
        ),
      )
      return [database, ...toldOnce(lists, nameOfLists), ...clock]
    } finally {
      await session.close()
    }
  } catch (error) {
    if (error instanceof UsageError) return [fail('database', 2, error.message)]
    if (error instanceof MirrorError) return [fail('database', 4, error.message)]
    throw error
  }
}

function nameOfLists([first = '', ...others]: readonly string[]): string {
  return others.length === 0 ? first : `${first} and ${counted(others.length, 'more list')}`
}
