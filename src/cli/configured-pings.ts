import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { ERRORS, type ErrorCode } from '../errors.ts'
import { createPings, type Pings } from '../ping/pings.ts'
import type { JobStatus, Status } from '../report/status.ts'
import { needsAttention, troubleCode } from '../report/verdict.ts'
import { counted, printable } from '../text.ts'
import { configOfFile } from './config-file.ts'
import { readStatus } from './read-status.ts'
import type { Runtime } from './runtime.ts'

/** The pings of a configuration. Their address is a secret, so that the log names only its host. */
export function pingsOf(config: Config, runtime: Runtime, logger: Logger, userAgent: string): Pings {
  const address = config.ping()
  const current = configOfFile(config, runtime)
  return createPings({
    address,
    userAgent,
    verdict: async () => {
      const status = await readStatus(runtime, { database: config.database, config: current() })
      return { isWell: status.check_exit_code === 0, text: verdictText(status) }
    },
    onEnd(kind, lost) {
      const fields = { ping: kind, host: address === null ? null : new URL(address).host }
      if (lost === null) logger.debug({ event: 'ping_sent', ...fields }, 'ping sent')
      else
        logger.warn(
          { event: 'ping_lost', ...fields, reason: lost },
          'a ping could not be delivered; the run is not touched by that',
        )
    },
    signal: runtime.signal,
  })
}

/** The verdict, and each cause once. What a server said is left out: it may hold an item's data, and a ping goes to others. */
export function verdictText({ verdict, jobs }: Pick<Status, 'verdict' | 'jobs'>): string {
  const causes = Map.groupBy(jobs.filter(needsAttention), causeOf)
  const lines = Array.from(causes, ([cause, [first, ...others]]) => {
    const name = first === undefined ? '' : printable(`${first.organization} ${first.collection}`, 80)
    return `${name}${others.length > 0 ? ` and ${counted(others.length, 'more list')}` : ''}: ${cause}`
  })
  return [verdict, ...lines].join('\n')
}

function causeOf(job: JobStatus): string {
  const code = troubleCode(job)
  if (code === null) return 'overdue by its schedule'
  // A later version may have left a code that is unknown here.
  return Object.hasOwn(ERRORS, code) ? `${code} (${ERRORS[code as ErrorCode].meaning})` : printable(code, 60)
}
