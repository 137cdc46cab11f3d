import { describe, expect, it } from 'vitest'
import type { JobError } from '../../src/errors.ts'
import { GLOBEX, jobOf } from '../helpers/jobs.ts'
import { pageText, TOKEN } from './helpers/api.ts'
import { createHoldStore, NOW } from './helpers/rate.ts'
import { createWire } from './helpers/wire.ts'

const { asked, foresee, createSetting } = createWire()

const ONCE = { options: { retry: { attempts: 1, minDelay: 1000, maxDelay: 1000 } } }

it('a page is asked for with both headers, JSON first and alone, is returned checked, and tells how far our clock is ahead of the API', async () => {
  const headers = {
    'x-ratelimit-limit': '60',
    'x-ratelimit-remaining': '59',
    date: 'Fri, 20 Nov 2026 08:00:00 GMT',
  }
  foresee(299, pageText(2, 3), headers, 2)
  const { fetchPage, reports, clockAhead } = createSetting()
  expect(clockAhead()).toBeNull()

  expect(await fetchPage(2)).toMatchObject({ number: 2, next: 3, total: 3 })

  expect(asked).toMatchObject([
    {
      authorization: `Bearer ${TOKEN}`,
      'x-service-organization': jobOf().organization.id,
      accept: 'application/json',
      'user-agent': 'admin-mirror/0.0.0',
    },
  ])
  expect(clockAhead()).toBe(30 * 60_000)
  expect(reports).toEqual([['waited', 0], ['request']])
})

it('a request that a signal keeps from leaving is not counted', async () => {
  const heldReason = async () => {
    setting.stop()
    return null
  }
  const setting = createSetting({ holdStore: { ...createHoldStore(), heldReason } })

  await expect(setting.fetchPage()).rejects.toThrow('aborted')

  expect(setting.reports.filter(([what]) => what === 'request')).toEqual([])
})

describe('an answer that asks for a pause', () => {
  it('with 429 is waited out and uses up no attempt', async () => {
    for (let count = 0; count < 5; count++) foresee(429, '', { 'retry-after': '10' })
    foresee(429, '<h1>429</h1>')
    foresee(200, pageText(1))
    const { fetchPage, reports, clock } = createSetting(ONCE)

    await fetchPage()

    const count = (kind: string) => reports.filter(([what]) => what === kind).length
    expect([count('request'), count('throttled'), count('retry')]).toEqual([7, 6, 0])
    expect(reports).toContainEqual(['wait', 'the server takes no more requests for now', clock.now()])
    expect(reports.at(-2)).toEqual(['waited', 61_000])
  })

  it('with 503 keeps other jobs waiting until then, too', async () => {
    foresee(503, '', { 'retry-after': '120' })
    const { errorOf, clock, budgets } = createSetting(ONCE)

    expect((await errorOf()).message).toBe('acme orders page 1: the server failed (503)')
    expect(budgets.kept('budget').closedUntil).toBe(clock.now() + 120_000)
  })

  it('beyond maxWait stops all jobs until then, with 503, too', async () => {
    foresee(503, '', { 'retry-after': '7200' })
    const { open, clock, budgets } = createSetting()

    const [error, later] = [await open().errorOf(), await open(jobOf({}, GLOBEX)).errorOf()]

    expect(error).toMatchObject({ code: 'RATE_LIMITED' })
    expect(error.message).toMatch(
      /^acme orders page 1: the server takes no more requests for now, and the wait of 2 hours is/,
    )
    expect(later.message).toMatch(/^globex orders page 1: the server takes no more requests for now/)
    expect(await open().refusal()).toMatchObject({ code: 'RATE_LIMITED' })
    expect((later as JobError).shared).toBe((error as JobError).shared)
    expect(budgets.kept('budget').closedUntil).toBe(clock.now() + 7_201_000)
    expect(clock.now()).toBe(NOW)
  })
})
