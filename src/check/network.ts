import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect as connectPlain, isIP } from 'node:net'
import { connect as connectTls, type PeerCertificate, type TLSSocket } from 'node:tls'
import { systemCode } from '../errors.ts'
import { inWords } from '../text.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

const NAME = 'api'
const DAY = 86_400_000

/** A certificate that ends sooner is worth a word. */
const SOON_MS = 14 * DAY

/** For a name, and for a connection. Milliseconds. */
const LIMIT_MS = 10_000

/**
 * Whether the address of the API can be reached: its name, its port, and its certificate. No request is sent. A mistyped
 * host is told of here, once, and not by each list.
 */
export async function checkNetwork(baseUrl: string, now: number, signal: AbortSignal): Promise<Finding[]> {
  const url = new URL(baseUrl)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const name = await checkName(host, signal)
  if (name.state === 'fail') return [name]
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
  const connection = await checkConnection(url, host, port, now, signal)
  return [name, connection]
}

async function checkName(host: string, signal: AbortSignal): Promise<Finding> {
  if (isIP(host) !== 0) return ok(NAME, `${host} is an address`)
  try {
    const { address } = await within(lookup(host), signal)
    return ok(NAME, `${host} is ${address}`)
  } catch (error) {
    const code = failureCode(error)
    const meaning = code === 'ENOTFOUND' ? 'is a name that nobody knows' : `could not be looked up (${code})`
    return fail(NAME, 1, `${host} ${meaning}`, 'correct api.baseUrl, or the name server of this machine')
  }
}

async function checkConnection(
  url: URL,
  host: string,
  port: number,
  now: number,
  signal: AbortSignal,
): Promise<Finding> {
  const isTls = url.protocol === 'https:'
  const limit = AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)])
  const socket = isTls
    ? connectTls({ host, port, ...(isIP(host) === 0 ? { servername: host } : {}) })
    : connectPlain({ host, port })
  // An error event without a listener ends the process.
  socket.on('error', () => {})
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal: limit })
    return isTls
      ? checkCertificate((socket as TLSSocket).getPeerCertificate(), host, now)
      : ok(NAME, `port ${port} of ${host} answers`)
  } catch (error) {
    if (!limit.aborted) return refused(failureCode(error), host, port)
    const cure = 'look at api.baseUrl and at the way there'
    return fail(NAME, 1, `port ${port} of ${host} did not answer in time`, cure)
  } finally {
    socket.destroy()
  }
}

function refused(code: string, host: string, port: number): Finding {
  if (code === 'ECONNREFUSED')
    return fail(
      NAME,
      1,
      `nothing listens at port ${port} of ${host}`,
      'correct api.baseUrl, or start the server',
    )
  if (/CERT|^UNABLE_TO_|^HOSTNAME|^INVALID_/.test(code))
    return fail(
      NAME,
      1,
      `the certificate of ${host} is refused (${code})`,
      'correct api.baseUrl; for an authority of your own set NODE_EXTRA_CA_CERTS=/path/ca.pem',
    )
  return fail(
    NAME,
    1,
    `port ${port} of ${host} cannot be used (${code})`,
    'correct api.baseUrl: http or https, host and port',
  )
}

function checkCertificate({ valid_to: end }: PeerCertificate, host: string, now: number): Finding {
  const left = Date.parse(end) - now
  const text = `the certificate of ${host} is valid for ${inWords(left)}`
  return left < SOON_MS ? warn(NAME, text, 'whoever runs the API should renew it') : ok(NAME, text)
}

function failureCode(error: unknown): string {
  return systemCode(error) ?? 'unknown error'
}

/** Rejects when the time is up, or the process is told to stop. */
function within<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)])
  const late = new Promise<never>((_resolve, reject) => {
    limit.addEventListener('abort', () => reject(Object.assign(new Error('late'), { code: 'ETIMEDOUT' })))
  })
  return Promise.race([promise, late])
}
