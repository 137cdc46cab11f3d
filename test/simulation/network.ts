import type { HttpGet, Response } from '../../src/api/http.ts'
import { RetryableError } from '../../src/errors.ts'
import type { VirtualClock } from './clock.ts'
import { jobName, type Request, type Tell } from './happening.ts'
import type { SimulatedProcess } from './process.ts'
import type { Random } from './random.ts'
import type { Server } from './server.ts'
import type { Setting } from './setting.ts'

/** How a process sends its requests to the server, and gets back what it answers if it still lives then. */
export function createNetwork(
  { latencyMs, config }: Setting,
  clock: VirtualClock,
  server: Server,
  tell: Tell,
  random: Random,
) {
  const timeout = config.api.timeout
  let sent = 0

  /** To the server, and back. */
  function travel(request: Request, signal: AbortSignal): Promise<Response> {
    const { process } = request
    return new Promise((resolve, reject) => {
      let isOver = false
      const giveUp = () => {
        isOver = true
        tell({ kind: 'gave up', request })
        reject(signal.reason)
      }
      signal.addEventListener('abort', giveUp, { once: true })
      clock.after(random.whole(1, latencyMs), () => {
        const outcome = server.receive(request, clock.now())
        tell({ kind: 'served', request, outcome })
        process.meet('served')
        clock.after(outcome.kind === 'silence' ? timeout : random.whole(1, latencyMs), () => {
          process.whenAwake(() => {
            signal.removeEventListener('abort', giveUp)
            process.meet('answer')
            if (request.reader === 'refresh') process.meet('refresh answer')
            // Its sender is gone, or has given up.
            if (isOver || !process.isAlive()) return
            tell({ kind: 'delivered', request, outcome })
            if (outcome.kind === 'silence')
              reject(new RetryableError('TIMEOUT', `no whole answer within api.timeout (${timeout} ms)`))
            else if (outcome.kind === 'reset')
              reject(new RetryableError('NETWORK', 'the network failed (ECONNRESET)'))
            else {
              process.was.refused ||= outcome.status === 401
              resolve({ ...outcome, body: Buffer.from(outcome.body) })
            }
          })
        })
      })
    })
  }

  return (process: SimulatedProcess): HttpGet =>
    async (url, headers, signal, onStatus) => {
      signal.throwIfAborted()
      process.step('request')
      const job = jobName(headers['x-service-organization'] ?? '', url.pathname.split('/').at(-1) ?? '')
      const parity = url.searchParams.get('parity')
      const request: Request = {
        number: ++sent,
        process,
        token: (headers.authorization ?? '').replace(/^Bearer /, ''),
        job,
        page: Number(url.searchParams.get('page') ?? '1'),
        filters: parity === null ? {} : { parity },
        reader: process.refreshing.has(job) ? 'refresh' : 'walk',
      }
      tell({ kind: 'sent', request })
      const response = await travel(request, signal)
      onStatus?.(response.status)
      return response
    }
}
