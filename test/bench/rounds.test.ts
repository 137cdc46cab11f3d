import { expect, it } from 'vitest'
import { interleaved } from './rounds.ts'

it('runs the contenders in turn, one after another, and keeps what each measured by round', async () => {
  const ran: string[] = []
  let running = 0
  const contender = (name: string) => async () => {
    expect(running++).toBe(0)
    await Promise.resolve()
    running--
    ran.push(name)
    return ran.length
  }

  const measured = await interleaved(2, { a: contender('a'), b: contender('b') }, (round) =>
    ran.push(`round ${round}`),
  )

  expect(ran).toEqual(['round 1', 'a', 'b', 'round 2', 'a', 'b'])
  expect(measured).toEqual({ a: [2, 5], b: [3, 6] })
})
