import { inspect } from 'node:util'
import type nock from 'nock'
import { describe, expect, it } from 'vitest'
import { KnownError, TokenRefusedError } from '../../src/errors.ts'
import { createSetting, TOKEN } from './helpers/api.ts'
import { createJob, pageText } from './helpers/job.ts'
import { createHoldStore } from './helpers/stores.ts'
import { foresee, watchTheWire } from './helpers/wire.ts'

watchTheWire()

describe('a 401', () => {
  it('says what to do, and no further request is sent with the token', async () => {
    foresee().reply(401, '{"message":"Unauthenticated."}')
    const { open, holdStore, reports } = createSetting()

    const error = await open().errorOf()
    const others = [await open().errorOf(2), await open(createJob({ name: 'other' })).errorOf()]

    expect(error).toBeInstanceOf(TokenRefusedError)
    expect(error.message).toBe(
      'the token of organization acme was refused (401) at orders page 1; it was revoked, or is mistyped. Nothing more is ' +
        'sent with it. Put a new token into the configuration, or run "admin-mirror resume --org acme" if it is valid again',
    )
    expect(others.every((other) => other instanceof TokenRefusedError)).toBe(true)
    expect(holdStore.heldReason()).toBe('the token of organization acme was refused (401)')
    expect(reports.filter(([what]) => what === 'request')).toHaveLength(1)
  })

  it('with a page of HTML says so: it may come from a proxy', async () => {
    foresee().reply(401, `<html><title>Log in, please</title></html>`)
    const { errorOf, holdStore } = createSetting()
    const reason =
      'the token of organization acme was refused (401) with a page of HTML (its title: Log in, please)'

    expect((await errorOf()).message).toContain(
      `${reason} at orders page 1; it comes from a firewall or proxy before the API, or api.baseUrl is not the API: look there; ` +
        'else the token was revoked, or is mistyped. Nothing more is sent with it.',
    )
    expect(holdStore.heldReason()).toBe(reason)
  })

  it('keeps no token that its page echoes', async () => {
    foresee().reply(401, `<html><title>Log in ${TOKEN}</title></html>`)
    const { errorOf, holdStore } = createSetting()

    expectNoToken([await errorOf(), holdStore.heldReason()])
  })

  it('stops requests that wait for the rate limit, too', async () => {
    foresee().reply(401)
    const { open } = createSetting({ options: { concurrency: 1 } })

    const errors = await Promise.all([1, 2, 3].map((page) => open().errorOf(page)))

    expect(errors.map(({ name }) => name)).toEqual(Array.from({ length: 3 }, () => 'TokenRefusedError'))
  })
})

it('a token that an earlier run left held is not sent', async () => {
  const { errorOf, reports } = createSetting({ holdStore: createHoldStore('the token was refused (401)') })

  const error = await errorOf()

  expect(error).toBeInstanceOf(TokenRefusedError)
  expect(error.message).toMatch(/^the token was refused \(401\)\. Nothing more is sent with it\./)
  expect(reports.filter(([what]) => what === 'request')).toEqual([])
})

describe('the token', () => {
  it.each<[string, number, string]>([
    ['in the message of an error', 422, JSON.stringify({ message: `no user for ${TOKEN}` })],
    ['in the message of an error that is retried', 500, JSON.stringify({ message: `no user for ${TOKEN}` })],
    ['in a body that is no JSON', 200, `Bearer ${TOKEN}`],
    ['in a body of broken JSON, with escapes', 200, JSON.stringify([TOKEN]).replaceAll('/', '\\/') + ','],
    ['in the title of a page', 200, `<title>${TOKEN}</title>`],
    ['in the name of a field', 200, JSON.stringify({ data: { [TOKEN]: 1 } })],
  ])('is redacted if the server echoes it %s', async (_case, status, body) => {
    foresee()
      .times(status === 500 ? 3 : 1)
      .reply(status, body)
    const { errorOf, reports } = createSetting()

    const error = await errorOf()

    expectNoToken(error)
    expectNoToken(reports)
    expect(error.message).toContain('[token]')
  })

  it('is not shown if the page of a link echoes it', async () => {
    const next = `/api/v1/admin/orders?page=${encodeURIComponent(TOKEN)}`
    foresee().reply(200, pageText(1, 2, { links: { next } }))
    const { errorOf, reports } = createSetting()

    const error = await errorOf()

    expect(error).toMatchObject({ code: 'LINK_REFUSED' })
    expectNoToken([error, reports])
  })

  it.each<[string, (interceptor: nock.Interceptor) => void]>([
    [
      'a broken network',
      (interceptor) =>
        interceptor.times(3).replyWithError(Object.assign(new Error(TOKEN), { code: 'EPIPE' })),
    ],
    [
      'a refused certificate',
      (interceptor) =>
        interceptor.replyWithError(Object.assign(new Error(TOKEN), { code: 'CERT_HAS_EXPIRED' })),
    ],
    ['an answer that is too large', (interceptor) => interceptor.reply(200, 'x'.repeat(1_000_001))],
  ])('is nowhere in the error of %s, however deep one looks', async (_case, answer) => {
    answer(foresee())
    const { errorOf } = createSetting()

    const error = await errorOf()

    expect(error).toBeInstanceOf(KnownError)
    expect(error.cause).toBeUndefined()
    expectNoToken(error)
  })
})

describe('the token in an error that nobody foresaw', () => {
  const headers = { authorization: `Bearer ${TOKEN}` }

  it.each<[string, () => Error]>([
    [
      'which has the request in its fields',
      () => Object.assign(new Error('x'), { options: { headers }, request: { headers }, cause: { headers } }),
    ],
    ['whose message is what was sent', () => new Error(JSON.stringify(headers))],
    ['whose message begins with what a server echoed', () => unparsable(TOKEN)],
  ])('is not shown: %s', async (_what, make) => {
    const { errorOf, reports } = createSetting({ get: () => Promise.reject(make()) })

    const error = await errorOf()

    expect(error).toMatchObject({ code: 'INTERNAL' })
    expectNoToken(error)
    expectNoToken(reports)
  })
})

function unparsable(text: string): Error {
  try {
    JSON.parse(text)
  } catch (error) {
    return error as Error
  }
  throw new Error('it is JSON')
}

/** Not even a piece of it. */
function expectNoToken(value: unknown): void {
  const text = inspect(value, { depth: 20, showHidden: true, maxStringLength: null, maxArrayLength: null })
  const pieces = Array.from({ length: TOKEN.length - 7 }, (_, start) => TOKEN.slice(start, start + 8))

  expect(pieces.filter((piece) => text.includes(piece))).toEqual([])
}
