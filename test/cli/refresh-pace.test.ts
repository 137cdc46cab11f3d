import { expect, it } from 'vitest'
import { createPace } from '../../src/cli/refresh/pace.ts'

const SECOND = 1000
const NOW = Date.UTC(2026, 10, 20)

/** When so many refreshes that are due now may begin, in seconds. */
function beginsOf(count: number, needs: number): number[] {
  const pace = createPace()
  let now = NOW
  return Array.from({ length: count }, () => {
    now = Math.max(now, pace.freeAt('token'))
    pace.begin('token', needs, now)
    return (now - NOW) / SECOND
  })
}

it('refreshes that are due together begin as the share has room for them, and a few at once', () => {
  expect(beginsOf(7, 20 * SECOND)).toEqual([0, 0, 0, 0, 20, 40, 60])
  expect(beginsOf(3, 300 * SECOND)).toEqual([0, 240, 540])
})

it('each budget has its own pace', () => {
  const pace = createPace()
  pace.begin('one', 1e9, NOW)

  expect(pace.freeAt('two')).toBeLessThan(NOW)
})

it('a clock that was set back delays no refresh for long', () => {
  const pace = createPace()
  pace.begin('token', 20 * SECOND, NOW)
  pace.begin('token', 20 * SECOND, NOW - 3600 * SECOND)

  expect(pace.freeAt('token')).toBeLessThanOrEqual(NOW - 3580 * SECOND)
})
