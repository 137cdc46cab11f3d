import type { HttpGet } from '../../src/api/http.ts'
import { RetryableError } from '../../src/errors.ts'
import type { PageSource } from '../../src/sync/types.ts'
import type { VirtualClock } from './clock.ts'
import { jobName, type Outcome, type Reader, type Request, type Tell } from './happening.ts'
import type { SimulatedProcess } from './process.ts'
import type { Random } from './random.ts'
import type { Server } from './server.ts'
import type { Setting } from './setting.ts'

export interface NetworkOptions {
  setting: Setting
  clock: VirtualClock
  server: Server
  tell: Tell
  random: Random
}

/** How each process sends its requests to the server, and gets back what it answers if it still lives then. */
export function createNetwork({ setting, clock, server, tell, random }: NetworkOptions) {
  const { latencyMs, config } = setting
  const timeoutMs = config.api.timeout
  let sent = 0

  function requestOf(process: SimulatedProcess, url: URL, headers: Record<string, string>): Request {
    const organization = headers['x-service-organization'] ?? ''
    const collection = url.pathname.split('/').at(-1) ?? ''
    const parity = url.searchParams.get('parity')
    return {
      number: ++sent,
      process,
      token: (headers.authorization ?? '').replace(/^Bearer /, ''),
      organization,
      collection,
      job: jobName(organization, collection),
      page: Number(url.searchParams.get('page') ?? '1'),
      filters: parity === null ? {} : { parity },
      reader: asking,
    }
  }

  /** Tells what the request has come to. */
  function travel(request: Request, arrive: (outcome: Outcome) => void): void {
    clock.after(random.whole(1, latencyMs), () => {
      const outcome = server.receive(request, clock.now())
      tell({ kind: 'served', request, outcome })
      request.process.strike('served')
      const back = outcome.kind === 'silence' ? timeoutMs : random.whole(1, latencyMs)
      clock.after(back, () => request.process.whenAwake(() => arrive(outcome)))
    })
  }

  function exchange(process: SimulatedProcess, request: Request, signal: AbortSignal) {
    return new Promise<Awaited<ReturnType<HttpGet>>>((resolve, reject) => {
      let isOver = false
      const giveUp = () => {
        isOver = true
        tell({ kind: 'gave up', request })
        reject(signal.reason)
      }
      signal.addEventListener('abort', giveUp, { once: true })
      travel(request, (outcome) => {
        signal.removeEventListener('abort', giveUp)
        process.strike('answer')
        if (request.reader === 'refresh') process.strike('refresh answer')
        // Its sender is gone, or has given up.
        if (isOver || !process.isAlive()) return
        tell({ kind: 'delivered', request, outcome })
        if (outcome.kind !== 'answer') {
          reject(faultOf(outcome, timeoutMs))
          return
        }
        const { status, headers, body } = outcome
        if (status === 401) process.was.refused = true
        resolve({ status, headers, body: Buffer.from(body) })
      })
    })
  }

  return (process: SimulatedProcess): HttpGet =>
    async (url, headers, signal) => {
      signal.throwIfAborted()
      process.step('request')
      const request = requestOf(process, url, headers)
      tell({ kind: 'sent', request })
      return exchange(process, request, signal)
    }
}

function faultOf({ kind }: Outcome, timeoutMs: number): RetryableError {
  return kind === 'silence'
    ? new RetryableError('TIMEOUT', `no whole answer within api.timeout (${timeoutMs} ms)`)
    : new RetryableError('NETWORK', 'the network failed (ECONNRESET)')
}

/** Who asks for the page that is being sent for now: a request does not say itself whether it is a walk's. */
let asking: Reader = 'walk'

/** The pages of a job as its readers ask for them. An observer is told of a request in the very moment in which it leaves. */
export function askedSource(source: PageSource): PageSource {
  return {
    ...source,
    fetchPage: (page, observe, signal, urgency) =>
      source.fetchPage(
        page,
        (event) => {
          if (event.kind === 'request') asking = urgency === undefined ? 'walk' : 'refresh'
          observe(event)
        },
        signal,
        urgency,
      ),
  }
}
