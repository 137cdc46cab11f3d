import {
  checkConfigured,
  checkPort,
  checkPublished,
  checkReadable,
  checkSchedules,
  checkTokens,
} from '../../check/configured.ts'
import { exitCodeOfFindings, type Finding, fail, findingLine, warn } from '../../check/finding.ts'
import { checkMirrorFile } from '../../check/mirror.ts'
import type { Config } from '../../config/config.ts'
import type { Status } from '../../report/status.ts'
import { openReader } from '../../store/sqlite/read/reader.ts'
import { asCalled } from '../../text.ts'
import { type Globals, readConfig, typedConfig } from '../config-file.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { jsonText } from '../output/results.ts'
import type { Runtime } from '../runtime.ts'
import { readStatus } from '../watch/read-status.ts'

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
  const mirror = config.postgres
    ? await (await import('../postgres/check.ts')).checkPostgres(config, runtime, baseUrl)
    : checkMirrorFile(config.database, baseUrl, config.collections)
  const status = await statusNow(config, runtime, globals)
  const offline = [
    ...checkConfigured(config),
    ...checkReadable(config),
    ...checkTokens(config),
    ...checkSchedules(config, runtime.now()),
    ...mirror.findings,
    ...adviceOf(status),
    ...(config.publish === null ? [] : checkPublished(config.publish, mirror.origin)),
    ...(config.http === null
      ? []
      : [await checkPort(config.http, !config.postgres && isDaemonRunning(config.database))]),
  ]
  if (isOffline) return offline
  const { checkApi, checkPings } = await import('../watch/check-online.ts')
  const online = [...offline, ...(await checkApi(config, runtime))]
  const isFailing = status?.jobs.some(({ failing_since: since }) => since !== null) === true
  const isWell = !isFailing && exitCodeOfFindings(online) === 0
  return [...online, ...(await checkPings(config, isWell, runtime))]
}

/** What `status` advises, once lists were read. */
function adviceOf(status: Status | null): Finding[] {
  const { advice = [], notes = [] } = status ?? {}
  return [...advice.map((text) => warn('advice', text)), ...notes.map((text) => warn('columns', text))]
}

/** What `status` says; null for a mirror that cannot be read, which is told of elsewhere. */
async function statusNow(config: Config, runtime: Runtime, globals: Globals): Promise<Status | null> {
  const { database } = config
  try {
    const reader = config.postgres
      ? await (await import('../postgres/status.ts')).readPostgresStatus(config, runtime)
      : undefined
    return readStatus({
      database,
      config,
      now: runtime.now(),
      configOption: typedConfig(globals),
      reader,
    })
  } catch {
    return null
  }
}

/** A mirror that cannot be read is told of elsewhere. */
function isDaemonRunning(database: string): boolean {
  try {
    const reader = openReader(database)
    try {
      return reader?.daemons().some(({ running }) => running !== false) === true
    } finally {
      reader?.close()
    }
  } catch {
    return false
  }
}
