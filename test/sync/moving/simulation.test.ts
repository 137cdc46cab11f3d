import { describe, expect, it } from 'vitest'
import { KINDS } from './kinds.ts'
import { isTrusted, live, SETTING } from './measure.ts'
import { measureAll } from './table.ts'

/** Small lists, read slowly enough that as much happens as on a long one; what is promised of these was measured on more. */
const SMALL = { ...SETTING, pages: 400 }

const SEEDS = Array.from({ length: 12 }, (_, seed) => seed + 1)

function readings(name: string) {
  const kind = KINDS[name]
  if (!kind) throw new Error(`there is no kind ${name}`)
  return SEEDS.flatMap((seed) => live(kind, seed, SMALL).readings)
}

describe('a walk over a list that moves in one way', () => {
  it.each(['append', 'front', 'random place', 'deletions'])(
    'is repaired in one pass, asks for few pages again, and misses nothing: %s',
    (name) => {
      for (const { coverage, passes, missed, extra } of readings(name)) {
        expect({ isTrusted: isTrusted({ coverage }), passes, missed }).toEqual({
          isTrusted: true,
          passes: 1,
          missed: 0,
        })
        expect(extra).toBeLessThan(12)
      }
    },
  )
})

describe('a walk over a still list', () => {
  it.each([
    ['still', 1],
    ['still + an hour', 2],
  ])('is steady, with a page for itself and one for each resume: %s', (name, more) => {
    for (const { coverage, extra, missed } of readings(name)) {
      expect({ coverage, pages: (extra * SMALL.pages) / 100, missed }).toEqual({
        coverage: 'steady',
        pages: more,
        missed: 0,
      })
    }
  })
})

describe('two walks over a list that moves', () => {
  it.each([
    'all',
    'all + an hour',
    'deletions + append',
    'resonance',
    'swaps, each ten minutes',
    'updates anywhere',
  ])('never agree on an item that is there being gone: %s', (name) => {
    const kind = KINDS[name] ?? { streams: {} }

    expect(SEEDS.map((seed) => live(kind, seed, SMALL).wronglyRemoved)).toEqual(SEEDS.map(() => 0))
  })
})

describe('a list that is sorted anew by the minute', () => {
  it('is drifted unless all passes together saw all of it, and no pass asks for more than twice its pages', () => {
    for (const { coverage, missed, extra } of readings('re-sorted by the minute')) {
      expect(coverage === 'drifted' || missed === 0).toBe(true)
      expect(extra).toBeLessThanOrEqual(500)
    }
  })
})

describe('what is said of many walks', () => {
  it('counts those that missed something, and those whose pairs would take away what is there', () => {
    const [row] = measureAll(2, ['still'], 1, { ...SMALL, pages: 40 })

    expect(row).toMatchObject({ kind: 'still', walks: 4, steady: 100, 'missing walks': 0, 'wrong pairs': 0 })
  })
})
