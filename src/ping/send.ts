import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'

/** What a ping says; the end of its address. */
export type PingKind = 'start' | 'success' | 'fail'

/** The response matters, and no byte of its body. */
const LEAST_HEADERS = { 'content-type': 'text/plain; charset=utf-8' }

/**
 * Sends one ping. Throws an Error whose message names neither the address nor anything of it: whoever knows it can send
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
    if (!url) return reject(new Error('its address is none'))
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
    request.on('error', (error) => reject(new Error(reasonOf(error, signal))))
    request.end(body)
  })
}

/** Null for a text that is no address. */
function pingUrl(address: string, kind: PingKind): URL | null {
  if (!URL.canParse(address)) return null
  const url = new URL(address)
  if (kind !== 'success') url.pathname = `${url.pathname.replace(/\/+$/, '')}/${kind}`
  return url
}

/** Node's own messages may hold the address. */
function reasonOf(error: Error, signal: AbortSignal): string {
  if (signal.aborted) return 'no answer in time'
  return 'code' in error && typeof error.code === 'string' ? error.code : 'the network failed'
}
