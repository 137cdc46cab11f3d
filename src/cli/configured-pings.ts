import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { createPings, type Pings } from '../ping/pings.ts'
import { pingText } from '../report/status-text.ts'
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
      return { isWell: status.check_exit_code === 0, text: pingText(status) }
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
