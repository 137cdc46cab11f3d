import { describe, expect, it } from 'vitest'
import { LONG } from '../../helpers/long.ts'
import { kindNamed } from './kinds.ts'
import { isTrusted, live, SETTING } from './measure.ts'

/** Small lists, read so slowly that as much happens as on a long one. The bounds were measured on more walks. */
const SMALL = { ...SETTING, pages: 400 }

const SEEDS = Array.from({ length: LONG ? 12 : 4 }, (_, seed) => seed + 1)

const MIXED = [
  'all',
  'all + an hour',
  'deletions + append',
  'resonance',
  'swaps, each ten minutes',
  'updates anywhere',
]

function readings(name: string) {
  return SEEDS.flatMap((seed) => live(kindNamed(name), seed, SMALL).readings)
}

describe('a walk over a list that moves in one way', () => {
  it.each(LONG ? ['append', 'front', 'random place', 'deletions'] : ['deletions'])(
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

describe('a walk over a list that does not move', () => {
  it.each([...(LONG ? [['still', 1] as const] : []), ['still + an hour', 2] as const])(
    'is steady, with a page for itself and one for each resume: %s',
    (name, more) => {
      for (const { coverage, extra, missed } of readings(name)) {
        expect({ coverage, pages: (extra * SMALL.pages) / 100, missed }).toEqual({
          coverage: 'steady',
          pages: more,
          missed: 0,
        })
      }
    },
  )
})

describe('two walks over a list that moves', () => {
  it.each(LONG ? MIXED : MIXED.slice(0, 1))('never agree on an item that is there being gone: %s', (name) => {
    const wrong = SEEDS.map((seed) => live(kindNamed(name), seed, SMALL).wronglyRemoved ?? 0)

    expect(wrong).toEqual(SEEDS.map(() => 0))
  })
})

describe('a list re-sorted by the minute', () => {
  it('is drifted unless all passes together saw all items, and no pass asks for more than twice its pages', () => {
    for (const { coverage, missed, extra } of readings('re-sorted by the minute')) {
      expect(coverage === 'drifted' || missed === 0).toBe(true)
      expect(extra).toBeLessThanOrEqual(500)
    }
  })
})
