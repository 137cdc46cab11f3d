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
    of: /^HPE_HEADER_OVERFLOW/,
    code: 'BAD_RESPONSE',
    says: `the answer has more than 16 kB of headers; ${AT_THE_SERVER}`,
  },
  {
    of: /^HPE_/,
    code: 'BAD_RESPONSE',
    says: `the answer is HTTP that breaks its rules; ${AT_THE_SERVER}`,
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
  // Handshakes that fail in the same way each time.
  {
    of: /^TLS .*(?:wrong version number|packet length|http request)/,
    code: 'NETWORK',
    says: 'the server speaks no TLS; look at http or https, and at the port, in api.baseUrl',
  },
  {
    of: /^TLS .*(?:certificate required|bad certificate|unknown ca)/,
    code: 'NETWORK',
    says: 'the server asks for a certificate of this client, and admin-mirror has none; ask who runs it for a way without',
  },
  {
    of: /^TLS .*unrecognized name/,
    code: 'NETWORK',
    says: 'the server has no certificate for this name; look at api.baseUrl',
  },
  {
    of: /^TLS .*(?:protocol|version|cipher|handshake failure|too small|no suitable)/,
    code: 'NETWORK',
    says: 'the server and this machine agree on no version or cipher of TLS; it is for whoever runs the server to mend',
  },
  {
    of: /^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)/,
    code: 'NETWORK',
    says: "the server's certificate has expired or is not valid yet, or this machine's clock is wrong; look at both",
  },
  {
    of: /^(?:ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)/,
    code: 'NETWORK',
    says: "the server's certificate is for another host; look at api.baseUrl",
  },
  {
    of: /SELF_SIGNED_CERT|^UNABLE_TO_(?:VERIFY|GET_ISSUER)/,
    code: 'NETWORK',
    says: "the server's certificate is signed by nobody whom this machine trusts; name a file with the CA in NODE_EXTRA_CA_CERTS if the server is yours",
  },
  {
    of: /^(?:\S*CERT|UNABLE_TO_|CRL_|ERROR_IN_CRL_|INVALID_(?:CA|PURPOSE) |PATH_LENGTH_EXCEEDED)/,
    code: 'NETWORK',
    says: "the server's certificate is refused; it is for whoever runs the server to mend",
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
  EHOSTUNREACH: ', which no route leads to',
  ENETUNREACH: ', which no route leads to',
  EACCES: ', which this machine may not connect to (a firewall?)',
  EPERM: ', which this machine may not connect to (a firewall?)',
  EMFILE: ': this process may open no more files',
}
