import { expect, it } from 'vitest'
import { createSkips } from '../../../src/cli/commands/start.ts'

const MINUTE = 60_000

it('a time of a schedule that is skipped is told once a list and hour, then counted', () => {
  let time = 0
  const skip = createSkips(() => time)
  const minutes = (from: number, to: number, name = 'acme orders') =>
    Array.from({ length: to - from + 1 }, (_, index) => {
      time = (from + index) * MINUTE
      return skip(name)
    }).filter((told) => told !== null)

  expect(minutes(0, 59)).toEqual([1])
  expect(minutes(60, 125)).toEqual([60, 60])
  expect(minutes(126, 126, 'globex orders')).toEqual([1])
  // The clock was set back.
  expect(minutes(3, 3)).toEqual([6])
})
