import type { HttpGet } from '../../src/api/http.ts'
import { RetryableError } from '../../src/errors.ts'
import type { VirtualClock } from './clock.ts'
import type { Tell } from './happening.ts'
import type { SimulatedProcess } from './process.ts'
import type { Random } from './random.ts'
import type { Server } from './server.ts'
import { jobName, type Outcome, type Request, whoAsks } from './traffic.ts'

export interface NetworkOptions {
  clock: VirtualClock
  server: Server
  tell: Tell
  random: Random
  timeoutMs: number
  /** One way takes between 1 and so many milliseconds. */
  latencyMs: number
}

/** Brings the requests of all processes to the server, and what it answers back to those that still live. */
export interface Network {
  exchangeOf(process: SimulatedProcess): HttpGet
}

export function createNetwork(options: NetworkOptions): Network {
  const { clock, server, tell, random, latencyMs, timeoutMs } = options
  let sent = 0

  function readRequest(process: SimulatedProcess, url: URL, headers: Record<string, string>): Request {
    const organization = headers['x-service-organization'] ?? ''
    const collection = url.pathname.split('/').at(-1) ?? ''
    const token = (headers.authorization ?? '').replace(/^Bearer /, '')
    const page = Number(url.searchParams.get('page') ?? '1')
    const job = jobName(organization, collection)
    const parity = url.searchParams.get('parity')
    const filters = parity === null ? {} : { parity }
    return {
      number: ++sent,
      process,
      sentAt: clock.now(),
      token,
      organization,
      collection,
      job,
      page,
      filters,
      reader: whoAsks(),
    }
  }

  /** Tells what the request has come to, unless its sender is gone or has given up. */
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
        if (isOver || !process.isAlive()) return
        tell({ kind: 'delivered', request, outcome })
        if (outcome.kind === 'answer' && outcome.status === 401) process.noteRefusal()
        if (outcome.kind === 'answer') resolve(responseOf(outcome))
        else reject(faultOf(outcome, timeoutMs))
      })
    })
  }

  return {
    exchangeOf: (process) => async (url, headers, signal) => {
      signal.throwIfAborted()
      process.step('request')
      const request = readRequest(process, url, headers)
      tell({ kind: 'sent', request })
      return exchange(process, request, signal)
    },
  }
}

function responseOf({ status, headers, body }: Outcome & { kind: 'answer' }) {
  return { status, headers, body: Buffer.from(body) }
}

function faultOf({ kind }: Outcome, timeoutMs: number): RetryableError {
  return kind === 'silence'
    ? new RetryableError('TIMEOUT', `no whole answer within api.timeout (${timeoutMs} ms)`)
    : new RetryableError('NETWORK', 'the network failed (ECONNRESET)')
}
