import { describe, expect, it } from 'vitest'
import { JobError, RetryableError } from '../../src/errors.ts'
import { createSetting } from './helpers/api.ts'
import { BASE_URL, createJob, ORDERS, pageText } from './helpers/job.ts'
import { foresee, watchTheWire } from './helpers/wire.ts'

watchTheWire()

const JSON_TYPE = { 'content-type': 'application/json' }

const NOT_THE_API = 'look at api.baseUrl and the path of the list, or at a proxy before the API'

describe('an answer that is refused', () => {
  const { id } = createJob().organization

  it.each<[number, string, string]>([
    [
      400,
      'BAD_REQUEST',
      'the server rejected the request as invalid (400) and says: no; look at the filters',
    ],
    [
      403,
      'FORBIDDEN',
      `the token's user is not a member of this organization (403) and says: no; let the user join it, or look at the token and the id ${id}`,
    ],
    [
      404,
      'ORGANIZATION_NOT_FOUND',
      `not found (404) and says: no; either the organization's id is wrong (${id}) or the address (${BASE_URL}${ORDERS})`,
    ],
    [422, 'UNEXPECTED_STATUS', `the server answered (422) and says: no; ${NOT_THE_API}`],
    // Neither a failure of the server, nor a redirect, nor the list.
    [999, 'UNEXPECTED_STATUS', `the server answered (999) and says: no; ${NOT_THE_API}`],
    [304, 'UNEXPECTED_STATUS', `the server answered (304); ${NOT_THE_API}`],
    [206, 'UNEXPECTED_STATUS', `the server answered (206) and says: no; ${NOT_THE_API}`],
    [
      301,
      'UNEXPECTED_STATUS',
      `the server redirects (301) to ${BASE_URL}/login, which is never followed; look at api.baseUrl`,
    ],
  ])('with %i is not asked for again, and is %s', async (status, code, says) => {
    const location = { ...JSON_TYPE, location: `${BASE_URL}/login` }
    foresee().reply(status, status === 304 ? '' : '{"message":"no"}', location)
    const { errorOf, reports } = createSetting()

    const error = await errorOf()

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject({ code, message: `acme orders page 1: ${says}` })
    expect(reports.filter(([what]) => what === 'retry')).toEqual([])
  })

  it.each<[number, string, string]>([
    [
      403,
      'FORBIDDEN',
      'access is refused (403) with a page of HTML (its title: Attention Required!); it comes from a firewall or proxy before the API, or api.baseUrl is not the API: look there',
    ],
    [
      502,
      'SERVER_ERROR',
      'the server failed (502) with a page of HTML (its title: Attention Required!) (tried 3 times)',
    ],
    [
      405,
      'UNEXPECTED_STATUS',
      `the server answered (405) with a page of HTML (its title: Attention Required!); ${NOT_THE_API}`,
    ],
  ])('with %i and a page of HTML says what came', async (status, code, says) => {
    foresee()
      .times(status === 502 ? 3 : 1)
      .reply(status, '<!DOCTYPE html><html><head><title>Attention Required!</title></head></html>')

    expect(await createSetting().errorOf()).toMatchObject({ code, message: `acme orders page 1: ${says}` })
  })

  it('that is a short text is shown: it comes from something before the API', async () => {
    foresee().reply(403, 'error code: 1020')

    const { message } = await createSetting().errorOf()
    expect(message).toMatch(/access is refused \(403\) and says: error code: 1020; it comes from a firewall/)
  })

  it.each([408, 500, 502, 503, 504, 520, 599])('with %i is retried, and succeeds then', async (status) => {
    foresee().reply(status, '{}')
    foresee().reply(200, pageText(1))
    const { fetchPage, reports, clock } = createSetting()

    await expect(fetchPage()).resolves.toMatchObject({ number: 1 })
    expect(reports.filter(([what]) => what === 'retry')).toEqual([
      ['retry', 'SERVER_ERROR', `acme orders page 1: the server failed (${status})`, 1000],
    ])
    expect(clock.slept).toEqual([1000])
  })

  it('with 500 each time fails after the last attempt', async () => {
    foresee().times(3).reply(500, '{"message":"Server Error"}')
    const { errorOf, clock } = createSetting()

    const error = await errorOf()

    expect(error).toBeInstanceOf(RetryableError)
    expect(error).toMatchObject({
      code: 'SERVER_ERROR',
      message: 'acme orders page 1: the server failed (500) and says: Server Error (tried 3 times)',
    })
    expect(clock.slept).toHaveLength(2)
  })

  it('with 503 keeps other jobs waiting until the server says, too', async () => {
    foresee().reply(503, '', { 'retry-after': '120' })
    const { open, clock, budgets } = createSetting({
      options: { retry: { attempts: 1, minDelayMs: 1000, maxDelayMs: 1000 } },
    })

    const error = await open().errorOf()

    expect(error).toMatchObject({ code: 'SERVER_ERROR' })
    expect(budgets.kept('budget').closedUntil).toBe(clock.now() + 120_000)
  })

  it.each([503, 429])('with %i and a pause beyond maxWait stops all jobs until then', async (status) => {
    foresee().reply(status, '', { 'retry-after': '7200' })
    const { open, clock, budgets } = createSetting()

    const [error, later] = [await open().errorOf(), await open(createJob({ name: 'other' })).errorOf()]

    expect(error).toMatchObject({ code: 'RATE_LIMITED' })
    expect(error.message).toMatch(/^acme orders page 1: the server asked for a pause, 2 hours long/)
    expect(later.message).toMatch(/^other orders page 1: the server asked for a pause/)
    expect(await open().refusal()).toMatchObject({ code: 'RATE_LIMITED' })
    expect(budgets.kept('budget').closedUntil).toBe(clock.now() + 7_201_000)
    expect(clock.slept).toEqual([])
  })

  it.each<[string, number, string, string]>([
    ['an empty body', 200, '', "the answer is empty; is api.baseUrl the API's address?"],
    ['another page', 200, pageText(1), 'asked for page 2, but got page 1'],
    [
      'a list without pages',
      200,
      '{"data":[]}',
      'asked for page 2, but got a list without pages: the API no longer pages this list, so an open walk must start over: run backfill --restart, or wait until the walk has stood still for resumeWithin',
    ],
  ])('because it is %s is not asked for again, and is BAD_RESPONSE', async (_case, status, body, says) => {
    foresee(2).reply(status, body)
    const { errorOf } = createSetting()

    const error = await errorOf(2)

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject({ code: 'BAD_RESPONSE', message: `acme orders page 2: ${says}` })
  })

  it.each<[string, object, string]>([
    ['to the same page', { next: `${BASE_URL}${ORDERS}?page=1` }, 'links.next leads from page 1 to page 1'],
    ['nowhere', {}, 'links.next is missing, so the end of the list is unknown'],
  ])('because its link leads %s is LINK_REFUSED', async (_case, links, says) => {
    foresee().reply(200, pageText(1, 2, { links }))

    expect(await createSetting().errorOf()).toMatchObject({
      code: 'LINK_REFUSED',
      message: expect.stringContaining(`acme orders page 1: ${says}`),
    })
  })
})
