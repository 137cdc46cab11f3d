import { describe, expect, it } from 'vitest'
import { inSteps, nextRows } from '../../../src/store/sqlite/steps.ts'
import { createClock } from '../../helpers/clock.ts'

describe('the size of a step', () => {
  it.each([
    ['grows after one that took no time', 64, 0, 128],
    ['stays after one that took long enough', 64, 30, 64],
    ['shrinks after one that took too long', 1000, 60, 250],
    ['is one row at least', 1, 10_000, 1],
    ['has a bound', 8192, 1, 8192],
  ])('%s', (_what, rows, took, expected) => {
    expect(nextRows(rows, took)).toBe(expected)
  })
})

/** Three steps of so long each, and what comes of them. */
function work(stepMs: number) {
  const clock = createClock()
  const stop = new AbortController()
  const rests: number[] = []
  const sizes: number[] = []
  const options = {
    now: clock.now,
    sleep: async (ms: number) => {
      rests.push(ms)
    },
    signal: stop.signal,
  }
  const step = (rows: number) => {
    sizes.push(rows)
    clock.advance(stepMs)
    return sizes.length === 3
  }
  return { options, step, stop, rests, sizes }
}

describe('work in steps', () => {
  it('is done to its end, each step larger than the one before as long as they are short', async () => {
    const { options, step, rests, sizes } = work(0)

    expect(await inSteps(options, step)).toBe(true)
    expect(sizes).toEqual([64, 128, 256])
    expect(rests).toEqual([1, 1])
  })

  it.each([
    [30, 15],
    [5000, 100],
  ])('of %i ms each rests for %i ms between them', async (stepMs, rest) => {
    const { options, step, rests } = work(stepMs)

    await inSteps(options, step)

    expect(rests).toEqual([rest, rest])
  })

  it('stops after the step at which the process is told to stop', async () => {
    const { options, step, stop, sizes } = work(0)
    stop.abort()

    expect(await inSteps(options, step)).toBe(false)
    expect(sizes).toHaveLength(1)
  })
})
