import { describe, expect, it } from 'vitest'
import { asksForPause, refusalOf } from '../../src/api/refusal.ts'
import { BASE_URL, createJob } from './helpers/job.ts'

const NOTHING = { limit: null, remaining: null, resetMs: null, retryAfterMs: null }
const MAX_WAIT = 900_000

function codeAndMessage(status: number, body = ''): [string, string] {
  const response = { status, headers: {}, body: Buffer.from(body) }
  const { code, message } = refusalOf(response, NOTHING, createJob(), BASE_URL)
  return [code, message]
}

function redirects(status: number): string {
  return `the server redirects (${status}), which is never followed; look at api.baseUrl`
}

describe('an answer that asks for a pause', () => {
  it.each<[number, number | null, boolean]>([
    [429, null, true],
    [429, 0, true],
    [503, MAX_WAIT + 1, true],
    [408, MAX_WAIT + 1, true],
    [503, MAX_WAIT, false],
    [503, null, false],
    [500, null, false],
    [404, MAX_WAIT + 1, false],
    [200, MAX_WAIT + 1, false],
  ])('is one with %i and Retry-After %s: %s', (status, retryAfterMs, expected) => {
    expect(asksForPause(status, { ...NOTHING, retryAfterMs }, MAX_WAIT)).toBe(expected)
  })
})

describe('a status that nobody foresaw', () => {
  it.each([
    [300, redirects(300)],
    [399, redirects(399)],
    [299, 'the server answered 299'],
    [405, 'the server answered 405'],
  ])('is told for what it is: %i', (status, message) => {
    expect(codeAndMessage(status)).toEqual(['UNEXPECTED_STATUS', message])
  })

  it.each([
    ['a message', '{"message":"no such method"}', ' and says: no such method'],
    ['an empty message', '{"message":""}', ''],
    ['a message that is no text', '{"message":{"text":"no"}}', ''],
    ['no message', '{}', ''],
    ['no JSON', '<html>', ''],
  ])('is told with the message of a body that has one: %s', (_what, body, says) => {
    expect(codeAndMessage(405, body)).toEqual(['UNEXPECTED_STATUS', `the server answered 405${says}`])
  })
})
