import type { ServerResponse } from 'node:http'
import { inspect } from 'node:util'
import { expect } from 'vitest'
import { createHttpGet, type HttpOptions } from '../../../src/api/http.ts'
import { KnownError } from '../../../src/errors.ts'

const SECRET = 'Bearer s3cr3t-token-of-somebody'

/** Long enough for every response that comes. */
export const OPTIONS: HttpOptions = {
  timeoutMs: 20_000,
  maxResponseBytes: 1_000_000,
  userAgent: 'admin-mirror/0.0.0',
}

export const SHORT = { timeoutMs: 200 }

export function ask(url: URL, options: Partial<HttpOptions> = {}, signal = new AbortController().signal) {
  return createHttpGet({ ...OPTIONS, ...options })(url, { authorization: SECRET }, signal)
}

/** The error of a request; checks that it holds nothing of the headers. */
export async function errorOf(url: URL, options: Partial<HttpOptions> = {}): Promise<Error> {
  const outcome: unknown = await ask(url, options).catch((error: unknown) => error)
  if (!(outcome instanceof Error)) throw new Error(`it was answered: ${inspect(outcome)}`)
  expect(inspect(outcome, { depth: 20, showHidden: true })).not.toContain('s3cr3t')
  expect(outcome).toBeInstanceOf(KnownError)
  return outcome
}

export function endless(response: ServerResponse): void {
  const more = () => {
    if (!response.destroyed) response.write(Buffer.alloc(64_000), more)
  }
  more()
}
