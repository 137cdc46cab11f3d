import { describe, expect, it } from 'vitest'
import { createPace, createTurns } from '../../src/listener/load.ts'

describe('the pace of answers', () => {
  it('lets fifty at once wait for nothing, and spreads what comes beyond by fifty a second', () => {
    const waitMs = createPace(() => 1_000_000)

    const waits = Array.from({ length: 151 }, waitMs)

    expect(waits.slice(0, 50).every((ms) => ms === 0)).toBe(true)
    expect([waits[100], waits[150]]).toEqual([1000, 2000])
  })

  it('forgets a flood that is over', () => {
    let now = 1_000_000
    const waitMs = createPace(() => now)
    for (let request = 0; request < 1000; request++) waitMs()

    now += 30_000

    expect(Array.from({ length: 50 }, waitMs).every((ms) => ms === 0)).toBe(true)
  })

  it('makes nobody wait for a clock that was set back', () => {
    let now = 1_000_000_000
    const waitMs = createPace(() => now)
    waitMs()

    now -= 86_400_000

    expect(waitMs()).toBeLessThanOrEqual(1000)
  })
})

it('a request whose client is gone by its turn takes none', async () => {
  const waits: number[] = []
  const turn = createTurns(
    () => 20,
    async (ms) => {
      waits.push(ms)
    },
  )

  await Promise.all([turn(() => true), turn(() => false), turn(() => true)])

  expect(waits).toEqual([20])
})
