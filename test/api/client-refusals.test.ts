import { expect, it } from 'vitest'
import { retryDelay, type RetryRules } from '../../src/api/retry.ts'
import { JobError } from '../../src/errors.ts'
import { ACME } from '../helpers/jobs.ts'
import { ORDERS, pageText } from './helpers/api.ts'
import { NOW } from './helpers/rate.ts'
import { createWire } from './helpers/wire.ts'

const { url, foresee, createSetting } = createWire()

const { id } = ACME
const LOOK =
  'look at the server, at a firewall or proxy before it, and whether api.baseUrl and the path lead there'
const INVALID = 'BAD_REQUEST the server rejected the request as invalid (400)'
const NO = '{"message":"no"}'
const TITLE = '<!DOCTYPE html><html><head><title>Attention Required!</title></head></html>'
const TITLED = 'with a page of HTML (its title: Attention Required!)'
const MEMBER = `let the token's user join this organization, or look at the token and the id ${id}`
const ADDRESS = `(${id}) or the address (${url}${ORDERS})`

it.each([
  [400, NO, `${INVALID} and says: no; look at the filters`],
  [400, '<html><body>Bad Request</body></html>', `${INVALID} with a page of HTML; look at the filters`],
  [403, NO, `FORBIDDEN access is refused (403) and says: no; ${MEMBER}`],
  [403, TITLE, `FORBIDDEN access is refused (403) ${TITLED}; ${MEMBER}`],
  [
    404,
    NO,
    `ORGANIZATION_NOT_FOUND not found (404) and says: no; either the organization's id is wrong ${ADDRESS}`,
  ],
  [405, TITLE, `UNEXPECTED_STATUS the server answered (405) ${TITLED}; ${LOOK}`],
  [
    422,
    'error code: 1020',
    `UNEXPECTED_STATUS the server answered (422) and says: error code: 1020; ${LOOK}`,
  ],
  [418, 'a line\nof a debug page', `UNEXPECTED_STATUS the server answered (418); ${LOOK}`],
  // Neither a failure of the server, nor a redirect, nor the list.
  [999, NO, `UNEXPECTED_STATUS the server answered (999) and says: no; ${LOOK}`],
  [
    301,
    '',
    `UNEXPECTED_STATUS the server redirects (301) to ${url}/login, which is never followed; look at api.baseUrl`,
  ],
])('%i with %j is not asked for again, and is %s', async (status, body, says) => {
  foresee(status, body, { location: `${url}/login?token=x` })
  const { errorOf, reports } = createSetting()

  const error = (await errorOf()) as JobError

  expect(error).toBeInstanceOf(JobError)
  expect(`${error.code} ${error.message.replace('acme orders page 1: ', '')}`).toBe(says)
  expect(error.message).toMatch(/^acme orders page 1: /)
  expect(reports.filter(([what]) => what === 'retry')).toEqual([])
})

it.each([408, 500, 503, 520, 599])('%i is asked for again, and succeeds then', async (status) => {
  foresee(status, '{}')
  foresee(200, pageText(1))
  const { fetchPage, reports, clock } = createSetting()

  await expect(fetchPage()).resolves.toMatchObject({ number: 1 })
  expect(reports.filter(([what]) => what === 'retry')).toEqual([
    ['retry', 'SERVER_ERROR', `acme orders page 1: the server failed (${status})`, 1000],
  ])
  expect(clock.now()).toBe(NOW + 1000)
})

it.each<[number, Partial<RetryRules>, number, number]>([
  [1, {}, 1000, 2000],
  [2, {}, 1000, 4000],
  [10_000, {}, 1000, 60_000],
  [3, { maxDelay: 500 }, 1000, 1000],
])('the delay after failure %i (%j) is between %i and %i ms', (failures, changed, least, most) => {
  const rules = { attempts: 4, minDelay: 1000, maxDelay: 60_000, ...changed }
  const delays = [0, 0.5, 1].map((chance) => retryDelay(failures, rules, () => chance))

  expect(delays).toEqual([least, (least + most) / 2, most])
})
