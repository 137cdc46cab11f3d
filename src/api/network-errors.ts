import { getSystemErrorMessage } from 'node:util'
import type { RequestError } from 'got'
import { JobError, type KnownError, RetryableError } from '../errors.ts'
import { LOOK } from './response-errors.ts'

/** Node's codes for a certificate that is refused. */
const CERTIFICATE = /CERT|^UNABLE_TO_|CRL_|^HOSTNAME_MISMATCH|^INVALID_(?:CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED/

/** What zlib says of an answer that is not what its header says. */
const NOT_COMPRESSED = /incorrect header check|Unknown frame descriptor/

/** zlib's codes for gzip, brotli and zstd. */
const DAMAGED = /^(?:Z_|ERR__|ZSTD_)/

/** The error of a request that got no whole answer: what happened, and whether that may pass by itself. */
export function errorOfRequest(error: RequestError, { origin }: URL, timeout: number): KnownError {
  if (error.name === 'TimeoutError')
    return new RetryableError('TIMEOUT', `no whole answer within api.timeout (${timeout} ms)`)
  // While the body is read, got puts the real code into the cause only.
  const cause: NodeJS.ErrnoException = error.cause instanceof Error ? error.cause : error
  const code = cause.code ?? error.code
  const where = `(${code} at ${origin})`
  if (code.startsWith('HPE_'))
    return new JobError('BAD_RESPONSE', `the answer is not HTTP, or breaks its rules ${where}; ${LOOK}`)
  if (NOT_COMPRESSED.test(error.message))
    return new JobError(
      'BAD_RESPONSE',
      `the answer is not compressed as its Content-Encoding says ${where}; ${LOOK}`,
    )
  if (DAMAGED.test(code))
    return new RetryableError(
      'BAD_RESPONSE',
      `the compressed answer breaks off or is damaged ${where}; if it stays so, ${LOOK}`,
    )
  // Before the codes: the server's alert may be of our certificate. The rest of the message may hold what was sent.
  const [, tls] = /SSL routines:[^:]*:([^:]*)/.exec(error.message) ?? []
  if (tls)
    return new RetryableError(
      'NETWORK',
      `no TLS with the server (${code}: ${tls} at ${origin}); look at http or https, and at the port, in api.baseUrl`,
    )
  if (CERTIFICATE.test(code))
    return new JobError(
      'NETWORK',
      `the server's certificate is refused ${where}; look at api.baseUrl and at both clocks, or name a file with the CA in NODE_EXTRA_CA_CERTS if the server is yours`,
    )
  const reason = cause.errno === undefined ? '' : `: ${getSystemErrorMessage(cause.errno)}`
  return new RetryableError('NETWORK', `the network failed (${code}${reason}) at ${origin}; ${LOOK}`)
}
