import nock from 'nock'
import { describe, expect, it } from 'vitest'
import { createHttpGet } from '../../../src/api/http.ts'
import { JobError, RetryableError } from '../../../src/errors.ts'
import { watchTheWire } from '../helpers/wire.ts'

watchTheWire()

const ORIGIN = 'https://admin.example.com'

/** The code and message of a network error with this code. */
async function errorOf(code: string): Promise<unknown> {
  nock(ORIGIN)
    .get('/list')
    .replyWithError(Object.assign(new Error('failed'), { code }))
  const get = createHttpGet({ timeoutMs: 20_000, maxResponseBytes: 1000, userAgent: 'test' })
  return get(new URL('/list', ORIGIN), {}, new AbortController().signal).catch((error: unknown) => error)
}

describe('a network that fails', () => {
  it.each([
    ['ECONNRESET', ', which closed the connection'],
    ['EIO', ''],
    ['ECONNREFUSED', ', where nothing listens'],
    ['ENOTFOUND', ', a name that is not known'],
    ['EAI_AGAIN', ', a name that could not be looked up'],
  ])('is retryable, and says where to look: %s', async (code, hint) => {
    const error = await errorOf(code)

    expect(error).toEqual(new RetryableError('NETWORK', `the network failed (${code}) at ${ORIGIN}${hint}`))
    expect(error).toBeInstanceOf(RetryableError)
  })

  it.each([
    ['CERT_HAS_EXPIRED', "has expired (or this machine's clock is wrong)"],
    ['CERT_NOT_YET_VALID', "is not valid yet (or this machine's clock is wrong)"],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'is for another host; look at api.baseUrl'],
    ['HOSTNAME_MISMATCH', 'is for another host; look at api.baseUrl'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', expect.stringContaining('NODE_EXTRA_CA_CERTS')],
    ['INVALID_CA', 'is refused'],
  ])('is not retryable if a certificate is not valid: %s', async (code, says) => {
    const error = await errorOf(code)

    expect(error).toBeInstanceOf(JobError)
    const { message } = error as Error
    expect([message.startsWith("the server's certificate "), message.endsWith(` (${code})`)]).toEqual([
      true,
      true,
    ])
    expect(message.slice("the server's certificate ".length, -` (${code})`.length)).toEqual(says)
  })
})
