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
    ['ECONNRESET', ''],
    ['ECONNREFUSED', ', where nothing listens'],
    ['ENOTFOUND', ', a name that is not known'],
    ['EAI_AGAIN', ', a name that could not be looked up'],
    ['EPROTO', ', which speaks no TLS'],
  ])('is retryable, and says where to look: %s', async (code, hint) => {
    const error = await errorOf(code)

    expect(error).toEqual(new RetryableError('NETWORK', `the network failed (${code}) at ${ORIGIN}${hint}`))
    expect(error).toBeInstanceOf(RetryableError)
  })

  it.each([
    'CERT_HAS_EXPIRED',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'INVALID_CA',
    'HOSTNAME_MISMATCH',
  ])('is not retryable if a certificate is not valid: %s', async (code) => {
    const error = await errorOf(code)

    expect(error).toEqual(new JobError('NETWORK', `the server's certificate is refused (${code})`))
    expect(error).toBeInstanceOf(JobError)
  })
})
