import { describe, expect, it } from 'vitest'
import { createVirtualClock } from './clock.ts'

describe('the virtual clock', () => {
  it('runs timers in the order of their time, those of one time in the order they were set', () => {
    const clock = createVirtualClock(1000)
    const ran: string[] = []
    const note = (name: string) => () => ran.push(`${name} at ${clock.now()}`)
    clock.after(20, note('late'))
    clock.after(10, note('first'))
    clock.after(10, note('second'))

    while (clock.tick());

    expect(ran).toEqual(['first at 1010', 'second at 1010', 'late at 1020'])
  })

  it('leaves out a timer that was taken back, and says when none is left', () => {
    const clock = createVirtualClock(0)
    let ran = false
    const takeBack = clock.after(5, () => {
      ran = true
    })

    takeBack()

    expect(clock.tick()).toBe(false)
    expect({ ran, now: clock.now() }).toEqual({ ran: false, now: 0 })
  })

  it('lets promises settle without time passing, however many wait for each other', async () => {
    const clock = createVirtualClock(0)
    let steps = 0
    const walk = async () => {
      for (; steps < 1000; steps++) await Promise.resolve()
    }
    void walk()

    await clock.settle()

    expect({ steps, now: clock.now() }).toEqual({ steps: 1000, now: 0 })
  })
})
