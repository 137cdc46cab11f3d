import {
  checkConfigured,
  checkPort,
  checkPublished,
  checkReadable,
  checkSchedules,
  checkTokens,
} from '../../check/configured.ts'
import { exitCodeOfFindings, type Finding, fail, findingLine, ok, warn } from '../../check/finding.ts'
import type { Config } from '../../config/config.ts'
import type { Status } from '../../report/status.ts'
import { asCalled } from '../../text.ts'
import { type Globals, readConfig, typedConfig } from '../config-file.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { kindOf } from '../mirror.ts'
import { jsonText } from '../output/results.ts'
import { readStatus } from '../read-status.ts'
import type { Runtime } from '../runtime.ts'

interface CheckOptions {
  offline?: boolean
  json?: boolean
}

/** `check`: what would keep runs from succeeding, and what to do about it. Online, it sends one request for each list. */
export async function run(runtime: Runtime, globals: Globals, options: CheckOptions): Promise<number> {
  const found = await findAll(runtime, globals, options.offline === true)
  const findings = found.map((finding) => withCommands(finding, typedConfig(globals)))
  const { signal, stdout } = runtime
  const exitCode = signal.aborted ? exitCodeOfStop(signal) : exitCodeOfFindings(findings)
  const report = { version: 1, exit_code: exitCode, checks: findings }
  stdout.write(options.json ? jsonText(report) : findings.map((one) => `${findingLine(one)}\n`).join(''))
  return exitCode
}

/** Its commands can be pasted. */
function withCommands(finding: Finding, configOption: string): Finding {
  const { message, cure } = finding
  return {
    ...finding,
    message: asCalled(message, configOption),
    cure: cure === null ? null : asCalled(cure, configOption),
  }
}

async function findAll(runtime: Runtime, globals: Globals, isOffline: boolean): Promise<Finding[]> {
  let config: Config
  try {
    config = readConfig(runtime, globals, 'resolve')
  } catch (error) {
    if (!(error instanceof Error && error.name === 'ConfigError')) throw error
    return error.message.split('\n').map((line) => fail('configuration', 2, line, null))
  }
  // Online it is told of where the session is opened.
  const baseUrl = isOffline ? config.api.baseUrl : null
  const kind = await kindOf(config)
  const mirror = await kind.check(config, runtime, baseUrl)
  // A mirror that cannot be read is told of already.
  const options = { database: config.database, config, configOption: typedConfig(globals) }
  const status = await readStatus(runtime, options).catch(() => null)
  // Of a mirror on a server it may run on another machine, whose port is another one.
  const isDaemonHere = !config.postgres && status !== null && status.daemon.running !== false
  const offline = [
    ...checkConfigured(config),
    ...checkReadable(config),
    ...checkTokens(config),
    ...checkSchedules(config, runtime.now()),
    ...mirror.findings,
    ...adviceOf(status),
    ...(config.publish === null ? [] : checkPublished(config.publish, mirror.origin)),
    ...(config.http === null ? [] : [await checkPort(config.http, isDaemonHere)]),
  ]
  if (isOffline) return offline
  const { checkApi, checkPings } = await import('./check-online.ts')
  const online = [...offline, ...(await checkApi(config, runtime))]
  const isFailing = status?.jobs.some(({ failing_since: since }) => since !== null) === true
  const isWell = !isFailing && exitCodeOfFindings(online) === 0
  return [...online, ...(await checkPings(config, isWell, runtime))]
}

/** What `status` advises, once lists were read. */
function adviceOf(status: Status | null): Finding[] {
  const { advice = [], refreshes = [], notes = [] } = status ?? {}
  return [
    ...refreshes.map((text) => ok('refreshes', text)),
    ...advice.map((text) => warn('advice', text)),
    ...notes.map((text) => warn('columns', text)),
  ]
}
