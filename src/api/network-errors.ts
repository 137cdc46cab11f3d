import type { RequestError } from 'got'
import { JobError, type KnownError, RetryableError } from '../errors.ts'
import { AT_THE_SERVER } from './response-errors.ts'

type Cause = readonly [of: RegExp, says: string]

const TO_MEND = 'it is for whoever runs the server to mend'

/** Answers that stay as they are, by what zlib or the parser of HTTP call them, code first: what came, and what to do about it. */
const ANSWERS: readonly Cause[] = [
  [/^HPE_INVALID_(?:CONSTANT|VERSION)\b/, 'the answer is not HTTP; look at the port in api.baseUrl'],
  [/^HPE_HEADER_OVERFLOW/, `the answer has more than 16 kB of headers; ${AT_THE_SERVER}`],
  [/^HPE_/, `the answer is HTTP that breaks its rules; ${AT_THE_SERVER}`],
  [
    /incorrect header check|Unknown frame descriptor/,
    `the answer is not compressed as its Content-Encoding says; ${AT_THE_SERVER}`,
  ],
]

/** Connections that are refused each time, by `TLS` and OpenSSL's words, or by the code that Node gives a certificate. */
const CONNECTIONS: readonly Cause[] = [
  [
    /^TLS .*(?:wrong version number|packet length|http request)/,
    'the server speaks no TLS; look at http or https, and at the port, in api.baseUrl',
  ],
  [
    /^TLS .*(?:certificate required|bad certificate|unknown ca)/,
    'the server asks for a certificate of this client, and admin-mirror has none; ask who runs it for a way without',
  ],
  [/^TLS .*unrecognized name/, 'the server has no certificate for this name; look at api.baseUrl'],
  [
    /^TLS .*(?:protocol|version|cipher|handshake failure|too small|no suitable)/,
    `the server and this machine agree on no version or cipher of TLS; ${TO_MEND}`,
  ],
  [
    /^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)/,
    "the server's certificate has expired or is not valid yet, or this machine's clock is wrong; look at both",
  ],
  [
    /^(?:ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)/,
    "the server's certificate is for another host; look at api.baseUrl",
  ],
  [
    /SELF_SIGNED_CERT|^UNABLE_TO_(?:VERIFY|GET_ISSUER)/,
    "the server's certificate is signed by nobody whom this machine trusts; name a file with the CA in NODE_EXTRA_CA_CERTS if the server is yours",
  ],
  [
    /^(?:\S*CERT|UNABLE_TO_|CRL_|ERROR_IN_CRL_|INVALID_(?:CA|PURPOSE) |PATH_LENGTH_EXCEEDED)/,
    `the server's certificate is refused; ${TO_MEND}`,
  ],
]

/** zlib's codes for gzip, brotli and zstd. */
const DAMAGED = /^(?:Z_|ERR__|ZSTD_)/

/** What the commonest codes of a network mean. */
const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: ', where nothing listens',
  ECONNRESET: ', which closed the connection',
  ENOTFOUND: ', a name that is not known',
  EAI_AGAIN: ', a name that could not be looked up',
  ETIMEDOUT: ', which does not answer',
  EHOSTUNREACH: ', which no route leads to',
  ENETUNREACH: ', which no route leads to',
  EACCES: ', which this machine may not connect to (a firewall?)',
  EPERM: ', which this machine may not connect to (a firewall?)',
  EMFILE: ': this process may open no more files',
}

/** The error of a request that got no whole answer: what happened, and whether that may pass by itself. */
export function errorOfRequest(error: RequestError, { origin }: URL, timeoutMs: number): KnownError {
  if (error.name === 'TimeoutError')
    return new RetryableError('TIMEOUT', `no whole answer within api.timeout (${timeoutMs} ms)`)
  // While the body is read, got puts the real code into the cause only.
  const { cause } = error
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : error.code
  const tls = tlsReason(error, code)
  // The message may hold what was sent; OpenSSL's reason does not.
  const detail = tls === '' ? code : `${code}: ${tls}`
  const where = `(${detail} at ${origin})`
  const met = tls === '' ? `${code} ${error.message}` : `TLS ${tls}`
  const saysOf = (causes: readonly Cause[]) => causes.find(([of]) => of.test(met))?.[1]
  const [answer, connection] = [saysOf(ANSWERS), saysOf(CONNECTIONS)]
  if (answer) return new JobError('BAD_RESPONSE', `${answer} ${where}`)
  if (connection) return new JobError('NETWORK', `${connection} ${where}`)
  if (DAMAGED.test(code))
    return new RetryableError(
      'BAD_RESPONSE',
      `the compressed answer breaks off or is damaged; if it stays so, ${AT_THE_SERVER} ${where}`,
    )
  return new RetryableError('NETWORK', `the network failed (${detail}) at ${origin}${HINTS[code] ?? ''}`)
}

/** OpenSSL's reason is in the code where a handshake fails on our side, and in the message where it fails on the other. */
function tlsReason({ message }: Error, code: string): string {
  if (code === 'EPROTO') return /SSL routines:[^:]*:([^:]*)/.exec(message)?.[1] ?? ''
  return code.startsWith('ERR_SSL_') ? code.slice('ERR_SSL_'.length).replaceAll('_', ' ').toLowerCase() : ''
}
