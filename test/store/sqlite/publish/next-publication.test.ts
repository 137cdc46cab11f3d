import { describe, expect, it } from 'vitest'
import {
  type NextPublication,
  nextPublication,
  type Publication,
} from '../../../../src/store/core/publication.ts'

const [NOW, EVERY] = [100_000_000_000, 300_000]
const MINUTES = 60_000
const DAY = 86_400_000

const OLD = { contents: 'six rows', freshness: 'noon' }
const FRESHER = { contents: 'six rows', freshness: 'one' }
const CHANGED = { contents: 'seven rows', freshness: 'one' }

/** A file made an hour ago, in ten seconds. */
const MADE: Publication = {
  mirror: OLD,
  published: OLD,
  made: { at: NOW - 60 * MINUTES, tookMs: 10_000 },
  toldAt: NOW - 60 * MINUTES,
  failed: null,
}

const file = (at: number): NextPublication => ({ what: 'file', at })
const numbers = (at: number): NextPublication => ({ what: 'numbers', at })
const made = (ago: number, tookMs = 1000) => ({ made: { at: NOW - ago, tookMs }, toldAt: NOW - ago })

describe('the next publication', () => {
  it.each<[string, Partial<Publication>, NextPublication | null]>([
    ['is none while nothing changed, however old the file is', made(9 * DAY), null],
    ['is the file where rows changed', { mirror: CHANGED }, file(NOW)],
    ['is the file where there is none', { published: null, made: null, toldAt: null }, file(NOW)],
    ['is the file where what is told is about another one', { published: null }, file(NOW)],
    ['waits until the last one is old', { mirror: CHANGED, ...made(MINUTES) }, file(NOW + 4 * MINUTES)],
    [
      'leaves time to others',
      { mirror: CHANGED, ...made(10 * MINUTES, 2 * MINUTES) },
      file(NOW + 10 * MINUTES),
    ],
    [
      'waits after a failure',
      { mirror: CHANGED, failed: { at: NOW - MINUTES, tookMs: 1 } },
      file(NOW + 4 * MINUTES),
    ],
    [
      'waits longer after a failed attempt that took long',
      { mirror: CHANGED, failed: { at: NOW - 10 * MINUTES, tookMs: 2 * MINUTES } },
      file(NOW + 10 * MINUTES),
    ],
    ['is the numbers alone where only freshness changed', { mirror: FRESHER }, numbers(NOW)],
    [
      'is the numbers a minute after the last ones, however long the file took',
      { mirror: FRESHER, ...made(40 * 1000, 20 * MINUTES) },
      numbers(NOW + 20 * 1000),
    ],
    ['is the numbers until the file is a day old', { mirror: FRESHER, ...made(DAY - 1) }, numbers(NOW)],
    ['is the file then', { mirror: FRESHER, ...made(DAY) }, file(NOW)],
    ['is the file then, whatever was told', { mirror: FRESHER, ...made(DAY), toldAt: NOW - 1 }, file(NOW)],
    ['does not wait for a time that the clock has not reached', { mirror: CHANGED, ...made(-1) }, file(NOW)],
    ['is the file where that is from the future', { mirror: FRESHER, ...made(-DAY) }, file(NOW)],
    ['waits for no future failure', { mirror: CHANGED, failed: { at: NOW + 1, tookMs: 0 } }, file(NOW)],
  ])('%s', (_what, more, next) => {
    expect(nextPublication({ ...MADE, ...more }, EVERY, NOW)).toEqual(next)
  })

  it('tells numbers as often as files are made, where that is more often than each minute', () => {
    expect(nextPublication({ ...MADE, mirror: FRESHER, ...made(500) }, 1000, NOW)).toEqual(numbers(NOW + 500))
  })

  it.each([
    ['the file', CHANGED, file(NOW)],
    ['the numbers', FRESHER, numbers(NOW)],
    ['nothing', OLD, null],
  ])('is %s at once at the end of a command', (_what, mirror, next) => {
    const failed = { at: NOW, tookMs: DAY }

    expect(nextPublication({ ...MADE, ...made(0, DAY), failed, mirror }, null, NOW)).toEqual(next)
  })
})
