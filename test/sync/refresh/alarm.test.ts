import { describe, expect, it } from 'vitest'
import { afterDeepPage, isAlarmed, isAlarming } from '../../../src/sync/refresh/alarm.ts'
import type { Recent } from '../../../src/sync/refresh/state.ts'

const HOUR = 3_600_000
const NOW = Date.UTC(2026, 10, 20)

/** What is known after so many pages, of which each held as many changed rows. */
function recentAfter(pages: number, found: number, page = { depth: 65, rate: 0.001, elapsed: 300 }): Recent {
  let recent: Recent = { pages: 0, found: 0, expected: 0 }
  for (let read = 0; read < pages; read++) recent = afterDeepPage(recent, { ...page, found })
  return recent
}

describe('an alarm', () => {
  it.each([
    { what: 'as many changes as usual', pages: 30, found: 0.3, expected: false },
    { what: 'a few more', pages: 30, found: 0.9, expected: false },
    { what: 'far more', pages: 30, found: 1.7, expected: true },
    { what: 'far more, on a few pages', pages: 9, found: 25, expected: false },
    { what: 'far more, on ten pages', pages: 10, found: 2.5, expected: true },
  ])('is given of $what: $expected', ({ pages, found, expected }) => {
    expect(isAlarming(recentAfter(pages, found), 0, undefined, NOW)).toBe(expected)
  })

  it('forgets what was long ago', () => {
    let recent = recentAfter(30, 25)
    for (let page = 0; page < 300; page++)
      recent = afterDeepPage(recent, { depth: 65, rate: 0.001, found: 0, elapsed: 300 })

    expect(isAlarming(recent, 0, undefined, NOW)).toBe(false)
  })

  it('is given of pages far from the newest end alone', () => {
    const near = { depth: 64, rate: 0.001, elapsed: 300 }

    expect(recentAfter(30, 25, near)).toEqual({ pages: 0, found: 0, expected: 0 })
  })

  it.each([
    { known: 11, last: null, expected: false },
    { known: 12, last: null, expected: true },
    { known: 100, last: 23, expected: false },
    { known: 100, last: 24, expected: true },
  ])('is given $known hours after the list is known, $last after the last one: $expected', (row) => {
    const { known, last, expected } = row
    const before = last === null ? undefined : NOW - last * HOUR

    expect(isAlarming(recentAfter(30, 10), NOW - known * HOUR, before, NOW)).toBe(expected)
  })

  it('ends with a full walk that began later', () => {
    expect(isAlarmed({})).toBe(false)
    expect(isAlarmed({ alarmedAt: 2 })).toBe(true)
    expect(isAlarmed({ alarmedAt: 2, walkAt: 1 })).toBe(true)
    expect(isAlarmed({ alarmedAt: 2, walkAt: 2 })).toBe(false)
  })
})
