import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { redact } from '../../src/api/redact.ts'
import { createTokenHold } from '../../src/api/token-hold.ts'
import { KnownError, TokenRefusedError } from '../../src/errors.ts'
import { GLOBEX, jobOf } from '../helpers/jobs.ts'
import { pageText, TOKEN } from './helpers/api.ts'
import { createHoldStore } from './helpers/rate.ts'
import { createWire } from './helpers/wire.ts'

const { foresee, createSetting } = createWire()

describe('a 401', () => {
  it('says what to do, and no further request is sent with the token', async () => {
    foresee(401, '{"message":"Unauthenticated."}')
    const { open, holdStore, reports } = createSetting({ options: { concurrency: 1 } })

    // All but the first wait for the rate limit meanwhile.
    const errors = await Promise.all([1, 2, 3].map((page) => open().errorOf(page)))
    errors.push(await open(jobOf({}, GLOBEX)).errorOf())
    const later = createSetting({ holdStore })
    errors.push(await later.errorOf())

    expect(errors.map(({ name }) => name)).toEqual(Array.from({ length: 5 }, () => 'TokenRefusedError'))
    expect(errors[0]?.message).toBe(
      'the token of organization acme was refused (401) and says: Unauthenticated. at orders page 1; it was revoked, or is mistyped, or a firewall or proxy refuses it. ' +
        'Nothing more is sent with it. Put a new token into the configuration, or run "admin-mirror resume --org acme" if it is valid again',
    )
    expect(errors.at(-1)?.message).toContain(' and says: Unauthenticated. Nothing more is sent with it. ')
    expect(new Set(errors.map((error) => (error as KnownError).shared)).size).toBe(1)
    expect(await holdStore.heldReason()).toBe(
      'the token of organization acme was refused (401) and says: Unauthenticated.',
    )
    expect([...reports, ...later.reports].filter(([what]) => what === 'request')).toHaveLength(1)
  })

  it('holds the token before its body is read', async () => {
    const { promise: body, resolve: end } = Promise.withResolvers<void>()
    const { errorOf, fetchPage } = createSetting({
      get: async (url, _headers, _signal, onStatus) => {
        if (url.search === '?page=1') return { status: 200, headers: {}, body: Buffer.from(pageText(1, 3)) }
        onStatus?.(401)
        await body
        return { status: 401, headers: {}, body: new Uint8Array() }
      },
    })
    await fetchPage()
    const refused = errorOf(2)

    expect(await errorOf(3)).toBeInstanceOf(TokenRefusedError)
    end()
    expect(await refused).toBeInstanceOf(TokenRefusedError)
  })

  it('with a page of HTML is told, and kept, with where it came from', async () => {
    foresee(401, '<html><head><title>Proxy login</title></head></html>')
    const { errorOf, holdStore } = createSetting()

    const { message } = await errorOf()

    const refusal =
      'the token of organization acme was refused (401) with a page of HTML (its title: Proxy login)'
    expect(message).toContain(`${refusal} at orders page 1; it was revoked`)
    expect(await holdStore.heldReason()).toBe(refusal)
  })
})

const json = JSON.stringify
const ONCE = { options: { retry: { attempts: 1, minDelay: 1000, maxDelay: 1000 } } }
const echo = (status: number, body: string) => () => foresee(status, body)

describe('the token', () => {
  it.each<[string, () => void]>([
    ['the title of a 401', echo(401, `<html><title>Log in ${TOKEN}</title></html>`)],
    ['the message of an error', echo(422, json({ message: `no user for ${TOKEN}` }))],
    ['the message of an error that is tried again', echo(500, json({ message: `no user for ${TOKEN}` }))],
    ['a body of broken JSON, with escapes', echo(200, `${json([TOKEN]).replaceAll('/', '\\/')},`)],
  ])(
    'is nowhere in the error, the reports and the hold of %s, however deep one looks',
    async (_case, answer) => {
      const { errorOf, reports, holdStore } = createSetting(ONCE)
      answer()

      const error = await errorOf()

      expect(error).toBeInstanceOf(KnownError)
      expect(error.cause).toBeUndefined()
      expectNoToken([error, reports, await holdStore.heldReason()])
    },
  )

  const headers = { authorization: `Bearer ${TOKEN}` }

  it.each<[string, Error]>([
    ['with the request in it', Object.assign(new Error('x'), { options: { headers }, cause: { headers } })],
    ['whose message is what was sent', new Error(json(headers))],
  ])('is not shown in an error that nobody foresaw, %s', async (_what, thrown) => {
    const { errorOf, reports } = createSetting({ get: () => Promise.reject(thrown) })

    const error = await errorOf()

    expect(error).toMatchObject({ code: 'INTERNAL' })
    expect(error.message).toMatch(/^acme orders page 1: unexpected: /)
    expectNoToken([error, reports])
  })

  it.each([
    ['a word around it', `you sent "Bearer:${TOKEN}"!`, 'you sent [token]'],
    ['other case', TOKEN.toUpperCase(), '[token]'],
    ['its encoding, in small letters', `/login?t=${encodeURIComponent(TOKEN).toLowerCase()}&x`, '[token]'],
    ['its base64, as in a header', `"got":"Basic ${btoa(`me:${TOKEN}`)}",`, '"got":"Basic [token],'],
    ['its base64, in an address', `/login/${btoa(TOKEN)}`, '[token]'],
    ['a slash as PHP writes it', TOKEN.slice(3, 15).replace('/', '\\/'), '[token]'],
    ['its end, and of a sentence', `(it was ${TOKEN.slice(9)}); let`, '(it was [token]); let'],
    ['12 characters of its beginning', `${TOKEN.slice(0, 12)}...`, '[token]...'],
    ['12 characters of its end', `...${TOKEN.slice(-12)}`, '[token]'],
    ['12 characters of its encoding', encodeURIComponent(TOKEN).slice(3, 15), '[token]'],
    ['but not 11', TOKEN.slice(5, 16), TOKEN.slice(5, 16)],
  ])('hides each word of a text that holds %s', (_case, text, shown) => {
    expect(redact(text, TOKEN)).toBe(shown)
  })

  it.each([
    ['short', 'x short! y', 'x [token] y'],
    ['', 'a text', 'a text'],
  ])('may be short, or empty: %j', (token, text, shown) => {
    expect(redact(text, token)).toBe(shown)
  })
})

describe('after a 401', () => {
  it('nothing is sent though the hold was read before it was written', async () => {
    const { promise, resolve } = Promise.withResolvers<null>()
    const store = { ...createHoldStore(), heldReason: () => promise }
    const { refused, refresh, check } = createTokenHold(store, 'resume')
    const reading = refresh()
    await refused('a 401')

    resolve(null)
    await reading

    expect(check).toThrow('a 401')
  })

  it('nothing is sent while the hold is still being written; if it cannot be, the next run writes it; and it is over once resume has lifted it', async () => {
    const { promise, reject } = Promise.withResolvers<void>()
    const store = createHoldStore()
    const writes = [() => promise]
    const hold = (why: string) => (writes.shift() ?? store.hold)(why)
    const { refused, begin, check } = createTokenHold({ ...store, hold }, 'resume')
    const refusing = refused('a 401')
    expect(check).toThrow(/^a 401\. Nothing more is sent with it\..*"resume"/)

    reject(new Error('the disk is full'))

    await expect(refusing).rejects.toThrow('the disk is full')
    expect(check).toThrow('a 401')
    expect(await begin()).toBe('a 401')
    expect(await store.heldReason()).toBe('a 401')
    store.lift()
    expect(await begin()).toBeNull()
    expect(check).not.toThrow()
  })
})

/** Not even a piece of it. */
function expectNoToken(value: unknown): void {
  const text = inspect(value, { depth: 20, showHidden: true, maxStringLength: null, maxArrayLength: null })
  const pieces = Array.from({ length: TOKEN.length - 7 }, (_, start) => TOKEN.slice(start, start + 8))

  expect(pieces.filter((piece) => text.includes(piece))).toEqual([])
}
