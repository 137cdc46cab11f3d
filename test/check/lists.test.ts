import { describe, expect, it } from 'vitest'
import { askList, checkClock, rateText } from '../../src/check/lists.ts'
import { InterruptedError, JobError, type KnownError, MirrorError } from '../../src/errors.ts'
import type { Page, PageSource } from '../../src/sync/types.ts'
import { jobOf } from '../helpers/jobs.ts'
import { pageOf } from '../helpers/pages.ts'
import { scriptedList } from '../helpers/scripted-list.ts'

const NEVER = new AbortController().signal

/** What is found of a list of one page, unless `source` says otherwise. */
async function found(source: Partial<PageSource>, limit = NEVER) {
  const closed: string[] = []
  const list = {
    ...scriptedList({ ids: [1, 2] }).source,
    ...source,
    close: async () => void closed.push('it'),
  }
  const { finding } = await askList(jobOf(), async () => list, limit)
  expect(closed).toEqual(['it'])
  return finding
}

const failing = (error: KnownError): Partial<PageSource> => ({ fetchPage: () => Promise.reject(error) })

describe('a list that is asked for its first page', () => {
  it.each<[Partial<Page>, string]>([
    [{ total: 4, lastPage: 2 }, '4 items on 2 pages'],
    [{ total: null, lastPage: null }, '1 item on the first page'],
  ])('and answers %j has %s', async (page, message) => {
    const source = { fetchPage: async () => pageOf(['{"id":1}'], page) }

    expect(await found(source)).toMatchObject({ name: 'acme orders', state: 'ok', message })
  })

  it.each<[KnownError, string, number, string]>([
    [new JobError('NETWORK', 'acme orders page 1: no answer'), 'fail', 1, 'no answer'],
    [new JobError('FORBIDDEN', 'it may not'), 'fail', 3, 'it may not'],
    [new JobError('INCOMPLETE', 'it ends'), 'fail', 1, 'it ends'],
    [new JobError('CONFIGURATION', 'no file'), 'fail', 2, 'no file'],
    [new MirrorError('it is full'), 'fail', 4, 'it is full'],
    [new InterruptedError('SIGINT'), 'warn', 0, 'stopped'],
  ])('and fails with %s is %s, and exits with %i', async (error, state, exitCode, message) => {
    expect(await found(failing(error))).toMatchObject({ state, exit_code: exitCode, message })
  })

  it('is not asked where none may be, and says so', async () => {
    const refusal = new JobError('UNAUTHORIZED', 'its token is held')
    const asked = failing(new JobError('INTERNAL', 'it was asked'))

    expect(await found({ ...asked, refusal: async () => refusal })).toMatchObject({
      exit_code: 3,
      message: 'not asked: its token is held',
    })
  })

  it.each<[Parameters<Parameters<PageSource['fetchPage']>[1]>[0] | null, string]>([
    [null, 'it waited for its turn'],
    [{ kind: 'request' }, 'it waited for an answer'],
    [{ kind: 'wait', reason: 'the rate limit', until: 0 }, 'the rate limit'],
  ])('says what it waits for when its time is up: %j', async (event, reason) => {
    const limit = new AbortController()
    const fetchPage: PageSource['fetchPage'] = (_page, observe) => {
      if (event) observe(event)
      limit.abort()
      return Promise.reject(new InterruptedError('late'))
    }

    expect(await found({ fetchPage }, limit.signal)).toMatchObject({
      state: 'warn',
      message: `not finished in time: ${reason}`,
    })
  })
})

const NOW = Date.UTC(2026, 10, 20)

it.each<[string | undefined, string | undefined]>([
  [undefined, undefined],
  ['soon', undefined],
  [new Date(NOW - 60_000).toUTCString(), "agrees with the server's"],
  [new Date(NOW - 61_000).toUTCString(), "is 61 seconds ahead of the server's"],
  [new Date(NOW + 61_000).toUTCString(), "is 61 seconds behind the server's"],
])('the clock, where the server says %s', (date, message) => {
  expect(checkClock(date, NOW)?.message).toBe(message)
})

it.each([
  [null, null, 'the server announces none; ours are not limited'],
  [6000, null, 'the server announces 6,000 requests a minute; ours are not limited'],
  [null, 300, 'the server announces none; ours are 300 a minute'],
])('of a rate limit of %j and our own of %j is said: %s', (announced, ours, text) => {
  expect(rateText(announced, ours)).toBe(text)
})
