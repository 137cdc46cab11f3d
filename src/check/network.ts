import { once } from 'node:events'
import { connect as connectPlain, isIP } from 'node:net'
import { connect as connectTls, type PeerCertificate, type TLSSocket } from 'node:tls'
import { isCertificateRefused, systemCode } from '../errors.ts'
import { inWords } from '../text.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

const NAME = 'api'

/** A certificate that ends sooner is a warning. */
const SOON_MS = 14 * 86_400_000

/** For a connection. Milliseconds. */
const CONNECT_MS = 10_000

/**
 * Whether the API can be connected to, and its certificate is valid. No request is sent. So a mistyped host is reported
 * once, and not for each list.
 */
export async function checkNetwork(baseUrl: string, now: number, signal: AbortSignal): Promise<Finding> {
  const url = new URL(baseUrl)
  const isTls = url.protocol === 'https:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port) || (isTls ? 443 : 80)
  const limit = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)])
  const socket = isTls
    ? connectTls({ host, port, ...(isIP(host) === 0 ? { servername: host } : {}) })
    : connectPlain({ host, port })
  // An error event without a listener ends the process.
  socket.on('error', () => {})
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal: limit })
    if (isTls) return checkCertificate((socket as TLSSocket).getPeerCertificate(), host, now)
    return ok(NAME, `port ${port} of ${host} answers`)
  } catch (error) {
    const [message, cure] = connectFailure(limit.aborted ? 'late' : systemCode(error), host, port)
    return fail(NAME, 1, message, `correct api.baseUrl, or ${cure}`)
  } finally {
    socket.destroy()
  }
}

/** What an error of connecting means, and what to look at. `late`: it ran out of its time. */
export function connectFailure(
  code: string | null,
  host: string,
  port: number,
): [message: string, cure: string] {
  const place = `port ${port} of ${host}`
  if (code === 'late') return [`${place} did not answer in time`, 'look at the way there']
  if (code === 'ENOTFOUND')
    return [`${host} is a name that nobody knows`, "look at this machine's name server"]
  if (code === 'EAI_AGAIN')
    return [`${host} could not be looked up (${code})`, "look at this machine's name server"]
  if (code === 'ECONNREFUSED') return [`nothing listens at ${place}`, 'start the server']
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER')
    return [`${place} speaks no TLS (${code})`, 'have the server speak it']
  if (isCertificateRefused(code ?? ''))
    return [
      `the certificate of ${host} is refused (${code})`,
      'for an authority of your own set NODE_EXTRA_CA_CERTS=/path/ca.pem',
    ]
  return [`${place} cannot be used (${code ?? 'unknown error'})`, 'look at the way there']
}

/** How long a certificate that is accepted is still valid. */
export function checkCertificate(
  { valid_to: end }: Pick<PeerCertificate, 'valid_to'>,
  host: string,
  now: number,
): Finding {
  const left = Date.parse(end) - now
  const text = `the certificate of ${host} is valid for ${inWords(left)}`
  return left < SOON_MS ? warn(NAME, text, 'whoever runs the API should renew it') : ok(NAME, text)
}
