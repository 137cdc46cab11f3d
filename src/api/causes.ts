import type { RequestError } from 'got'
import { type ErrorCode, JobError, type KnownError, RetryableError } from '../errors.ts'
import { AT_THE_SERVER, IF_IT_STAYS } from './body.ts'

/** What a request failed of, and what to do about it. A code or text stands behind it. */
interface Cause {
  /** By what got, Node, zlib or the parser of HTTP call it, code first; or by `TLS` and OpenSSL's words. */
  of: RegExp
  code: ErrorCode
  /** It may pass by itself. */
  passes?: true
  says: string
}

const CAUSES: readonly Cause[] = [
  {
    of: /^HPE_INVALID_(?:CONSTANT|VERSION)\b/,
    code: 'BAD_RESPONSE',
    says: 'the answer is not HTTP; look at the port in api.baseUrl',
  },
  {
    of: /^HPE_/,
    code: 'BAD_RESPONSE',
    says: `the answer is HTTP that breaks its rules, or has more than 16 kB of headers; ${AT_THE_SERVER}`,
  },
  {
    of: /incorrect header check|Unknown frame descriptor/,
    code: 'BAD_RESPONSE',
    says: `the answer is not compressed as its Content-Encoding says; ${AT_THE_SERVER}`,
  },
  {
    // zlib's codes for gzip, brotli and zstd.
    of: /^(?:Z_|ERR__|ZSTD_)/,
    code: 'BAD_RESPONSE',
    passes: true,
    says: `the compressed answer breaks off or is damaged; ${IF_IT_STAYS}`,
  },
  {
    // A handshake that fails in the same way each time.
    of: /^TLS .*(?:version|packet length|http request|certificate required|bad certificate|unknown ca|unrecognized name|protocol|cipher|handshake failure|too small|no suitable)/,
    code: 'NETWORK',
    says: 'the server and this machine do not agree on TLS; look at http or https, the host and the port in api.baseUrl, or at the server',
  },
  {
    of: /^(?:\S*CERT|UNABLE_TO_|CRL_|ERROR_IN_CRL_|INVALID_(?:CA|PURPOSE) |PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH)/,
    code: 'NETWORK',
    says: "the server's certificate is refused; look at its name in api.baseUrl and at this machine's clock, or name a file with its CA in NODE_EXTRA_CA_CERTS",
  },
]

/** The error of a request that got no whole answer: what happened, and whether that may pass by itself. */
export function causeOf(error: RequestError, { origin }: URL, timeoutMs: number): KnownError {
  if (error.name === 'TimeoutError')
    return new RetryableError('TIMEOUT', `no whole answer within api.timeout (${timeoutMs} ms)`)
  const code = codeOf(error)
  const tls = tlsReason(error, code)
  const known = CAUSES.find(({ of }) => of.test(tls === '' ? `${code} ${error.message}` : `TLS ${tls}`))
  // The message may hold what was sent; OpenSSL's reason does not.
  const detail = tls === '' ? code : `${code}: ${tls}`
  if (!known)
    return new RetryableError('NETWORK', `the network failed (${detail}) at ${origin}${HINTS[code] ?? ''}`)
  const message = `${known.says} (${detail} at ${origin})`
  return known.passes ? new RetryableError(known.code, message) : new JobError(known.code, message)
}

/** While the body is read, got puts the real code into the cause only. */
function codeOf({ code, cause }: RequestError): string {
  if (code !== 'ERR_READING_RESPONSE_STREAM') return code
  return cause instanceof Error && 'code' in cause ? String(cause.code) : code
}

/** OpenSSL's reason is in the code where a handshake fails on our side, and in the message where it fails on the other. */
function tlsReason({ message }: Error, code: string): string {
  if (code === 'EPROTO') return /SSL routines:[^:]*:([^:]*)/.exec(message)?.[1] ?? ''
  return code.startsWith('ERR_SSL_') ? code.slice('ERR_SSL_'.length).replaceAll('_', ' ').toLowerCase() : ''
}

/** What the commonest codes of a network mean. */
const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: ', where nothing listens',
  ECONNRESET: ', which closed the connection',
  ENOTFOUND: ', a name that is not known',
  EAI_AGAIN: ', a name that could not be looked up',
  ETIMEDOUT: ', which does not answer',
}
