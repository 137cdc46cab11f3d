import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'

/** The longest that one try takes. Milliseconds. */
const TRY_MS = 10_000

/** The pauses before the second and the third try. */
const PAUSES_MS = [1000, 2000]

export interface LineOptions {
  send: (kind: PingKind, text: string, signal: AbortSignal) => Promise<void>
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** Called for a ping that could not be delivered, with the reason. */
  onLost: (kind: PingKind, reason: string) => void
  onSent: (kind: PingKind) => void
  /** Aborted when the process is told to stop: then no ping is worth a wait. */
  signal: AbortSignal
  limitMs?: number
}

export type Line = ReturnType<typeof createLine>

/**
 * Sends the pings to one address, one after another, each in at most three tries of ten seconds. An outcome is not tried again once a newer one
 * waits. So nothing waits for more than about a minute.
 */
export function createLine(options: LineOptions) {
  const { send, sleep, onLost, onSent, signal, limitMs = TRY_MS } = options
  let told = 0
  let lastOutcome = 0
  let tail = Promise.resolve()

  async function deliver(kind: PingKind, text: string, number: number): Promise<void> {
    for (let failures = 0; !signal.aborted; failures++) {
      if (kind !== 'start' && lastOutcome > number) return
      try {
        await send(kind, text, AbortSignal.any([signal, AbortSignal.timeout(limitMs)]))
        return onSent(kind)
      } catch (error) {
        const pause = PAUSES_MS[failures]
        if (signal.aborted) return
        if (pause === undefined) return onLost(kind, error instanceof Error ? error.message : 'unknown')
        await sleep(pause, signal).catch(() => {})
      }
    }
  }

  return {
    tell(kind: PingKind, text: string): void {
      const number = ++told
      if (kind !== 'start') lastOutcome = number
      tail = tail.then(() => deliver(kind, text, number))
    },
    /** Resolves when nothing is left to send. */
    idle: () => tail,
  }
}

/** What a ping says; the end of its address. */
export type PingKind = 'start' | 'success' | 'fail'

/** Only the status of the response matters, so nothing more is asked for. */
const LEAST_HEADERS = { 'content-type': 'text/plain; charset=utf-8' }

/**
 * Sends one ping. Throws an Error whose message holds no part of the address: whoever knows it can send
 * pings. Follows no redirect, and takes no proxy from the environment.
 */
export function sendPing(
  address: string,
  kind: PingKind,
  text: string,
  { userAgent, signal }: { userAgent: string; signal: AbortSignal },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const url = pingUrl(address, kind)
    if (!url) return reject(new Error('its address is not a URL'))
    const body = Buffer.from(text)
    const headers = { ...LEAST_HEADERS, 'content-length': body.length, 'user-agent': userAgent }
    // An agent of our own: the global one may take a proxy from the environment.
    const isTls = url.protocol === 'https:'
    const agent = isTls ? new HttpsAgent() : new HttpAgent()
    const request = (isTls ? httpsRequest : httpRequest)(url, { method: 'POST', headers, agent, signal })
    request.once('response', ({ statusCode: status = 0 }) => {
      if (status >= 200 && status <= 299) resolve()
      else reject(new Error(`status ${status}`))
      request.destroy()
    })
    // Not `once`: an error event without a listener ends the process.
    request.on('error', (error) => reject(new Error(networkReason(error, signal))))
    request.end(body)
  })
}

/** Null for a text that is not an address. */
function pingUrl(address: string, kind: PingKind): URL | null {
  if (!URL.canParse(address)) return null
  const url = new URL(address)
  if (kind !== 'success') url.pathname = `${url.pathname.replace(/\/+$/, '')}/${kind}`
  return url
}

/** Node's own messages may hold the address. */
function networkReason(error: Error, signal: AbortSignal): string {
  if (signal.aborted) return 'no answer in time'
  return 'code' in error && typeof error.code === 'string' ? error.code : 'the network failed'
}
