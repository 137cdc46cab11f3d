import type { RequestError } from 'got'
import { isCertificateRefused, JobError, type KnownError, RetryableError } from '../errors.ts'
import { AT_THE_SERVER, IF_IT_STAYS } from './body.ts'

/** What a request failed of, as got, Node, OpenSSL and the parsers of HTTP and of compressed data name it. */
interface Failure {
  code: string
  /** What the one who named it says of it: it may hold what was sent. */
  message: string
  /** What OpenSSL says, in its own words; empty if it was not asked. */
  tls: string
  origin: string
  timeoutMs: number
}

/** The error of a request that got no whole answer: what happened, and whether that may pass by itself. */
export function causeOf(error: RequestError, { origin }: URL, timeoutMs: number): KnownError {
  const code = codeOf(error)
  return explain({
    code: error.name === 'TimeoutError' ? 'TIMEOUT' : code,
    message: error.message,
    tls: tlsReason(error, code),
    origin,
    timeoutMs,
  })
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

function explain({ code, message, tls, origin, timeoutMs }: Failure): KnownError {
  if (code === 'TIMEOUT')
    return new RetryableError('TIMEOUT', `no whole answer within api.timeout (${timeoutMs} ms)`)
  if (code === 'HPE_HEADER_OVERFLOW')
    return new JobError(
      'BAD_RESPONSE',
      'the answer has more than 16 kB of headers; look at the server, or a proxy before it',
    )
  if (NOT_HTTP.test(code))
    return new JobError(
      'BAD_RESPONSE',
      `the answer is not HTTP (${code}); look at api.baseUrl: what listens at ${origin}?`,
    )
  if (code.startsWith('HPE_'))
    return new JobError(
      'BAD_RESPONSE',
      `the answer is HTTP that breaks its rules (${code}); ${AT_THE_SERVER}`,
    )
  if (NOT_COMPRESSED.test(message))
    return new JobError(
      'BAD_RESPONSE',
      `the answer is not compressed as its Content-Encoding says (${code}); ${AT_THE_SERVER}`,
    )
  if (COMPRESSED.test(code)) {
    const how = code === 'Z_BUF_ERROR' ? 'breaks off' : 'is damaged'
    return new RetryableError('BAD_RESPONSE', `the compressed answer ${how} (${code}); ${IF_IT_STAYS}`)
  }
  const [, refusal] = tls === '' ? [] : (TLS_REFUSALS.find(([reasons]) => reasons.test(tls)) ?? [])
  if (refusal) return new JobError('NETWORK', `${origin} ${refusal} (TLS: ${tls})`)
  // After the refusals of TLS: some of these speak of a certificate of ours.
  if (tls === '' && isCertificateRefused(code))
    return new JobError('NETWORK', `the server's certificate ${CERTIFICATES[code] ?? 'is refused'} (${code})`)
  const hint = HINTS[code] ?? (tls === '' ? '' : `, where TLS failed: ${tls}`)
  return new RetryableError('NETWORK', `the network failed (${code}) at ${origin}${hint}`)
}

/** What the parser says of an answer that does not begin as HTTP does. */
const NOT_HTTP = /^HPE_INVALID_(?:CONSTANT|VERSION)$/

/** What zlib says of a body that begins in another way than gzip or zstd do. */
const NOT_COMPRESSED = /incorrect header check|Unknown frame descriptor/

/** zlib's codes for gzip, brotli and zstd. */
const COMPRESSED = /^(?:Z_|ERR__|ZSTD_)/

/** What a handshake that fails in the same way each time means, by OpenSSL's reason. */
const TLS_REFUSALS: readonly (readonly [reasons: RegExp, meaning: string])[] = [
  [
    /wrong version number|packet length too long|http request/,
    'speaks no TLS; look at http or https, and at the port, in api.baseUrl',
  ],
  [
    /certificate required|bad certificate|unknown ca/,
    'asks for a certificate of this client, and admin-mirror has none',
  ],
  [/unrecognized name/, 'has no certificate for this name; look at api.baseUrl'],
  [
    /protocol|version|cipher|handshake failure|too small|no suitable/,
    'and this machine agree on no version or cipher of TLS; it is for whoever runs the server to mend',
  ],
]

const CLOCK = "(or this machine's clock is wrong)"
const NOT_TRUSTED =
  'is signed by nobody whom this machine trusts; name a file with the CA in NODE_EXTRA_CA_CERTS if the server is yours'

const CERTIFICATES: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: `has expired ${CLOCK}`,
  CERT_NOT_YET_VALID: `is not valid yet ${CLOCK}`,
  ERR_TLS_CERT_ALTNAME_INVALID: 'is for another host; look at api.baseUrl',
  HOSTNAME_MISMATCH: 'is for another host; look at api.baseUrl',
  DEPTH_ZERO_SELF_SIGNED_CERT: NOT_TRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: NOT_TRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: NOT_TRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: NOT_TRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: NOT_TRUSTED,
}

/** What the commonest codes of a network mean. */
const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: ', where nothing listens',
  ECONNRESET: ', which closed the connection',
  EPIPE: ', which closed the connection',
  ERR_HTTP_CONTENT_LENGTH_MISMATCH: ', whose answer broke off',
  ENOTFOUND: ', a name that is not known',
  EAI_AGAIN: ', a name that could not be looked up',
  ETIMEDOUT: ', which does not answer',
  EHOSTUNREACH: ', which no route leads to',
  ENETUNREACH: ', which no route leads to',
  EACCES: ', which this machine may not connect to (a firewall?)',
  EPERM: ', which this machine may not connect to (a firewall?)',
  EMFILE: ': this process may open no more files',
  ENFILE: ': this machine may open no more files',
}
