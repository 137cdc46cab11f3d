import { expect, it } from 'vitest'
import { createPace } from '../../../src/cli/refresh/pace.ts'

const SECOND = 1000
const NOW = Date.UTC(2026, 10, 20)

const list = (budget: string, needs: number) => ({
  organizationId: 'acme',
  collection: 'orders',
  budget,
  needs,
  interval: 600 * SECOND,
})

/** When so many refreshes that are due now may begin, in seconds. */
async function beginsOf(count: number, needs: number): Promise<number[]> {
  const pace = createPace()
  const begins: number[] = []
  let now = NOW
  while (begins.length < count) {
    const { taken, freeAt } = await pace.take([list('token', needs)], now, false)
    if (taken.length > 0) begins.push((now - NOW) / SECOND)
    else now = freeAt.get('token') ?? Number.NaN
  }
  return begins
}

it('refreshes that are due together begin as the share has room for them, and a few at once', async () => {
  expect(await beginsOf(7, 20 * SECOND)).toEqual([0, 0, 0, 0, 20, 40, 60])
  expect(await beginsOf(3, 300 * SECOND)).toEqual([0, 240, 540])
})

it('each budget has its own pace', async () => {
  const pace = createPace()
  const { taken } = await pace.take([list('one', 1e9), list('one', 1), list('two', 1)], NOW, false)

  expect(taken.map(({ budget, needs }) => [budget, needs])).toEqual([
    ['one', 1e9],
    ['two', 1],
  ])
})

it('a clock that was set back delays no refresh for long', async () => {
  const pace = createPace()
  await pace.take([list('token', 90 * SECOND)], NOW, false)
  const hourAgo = NOW - 3600 * SECOND
  const due = [list('token', 20 * SECOND)]
  const full = await pace.take(due, hourAgo, false)
  const later = await pace.take(due, hourAgo + 30 * SECOND, false)

  expect(full.taken).toEqual([])
  expect(full.freeAt.get('token')).toBe(hourAgo + 30 * SECOND)
  expect(later.taken).toEqual(due)
})
