import { expect, it } from 'vitest'
import { LONG } from '../../helpers/long.ts'
import { kindNamed } from './kinds.ts'
import { isTrusted, live, SETTING } from './measure.ts'

// Lines of the table of coverage, with bounds that were measured on more walks: small lists, read so slowly that as much happens as on a
// long one. One of them in every run; all with LONG=1.

const SMALL = { ...SETTING, pages: 400 }
const SEEDS = Array.from({ length: LONG ? 12 : 4 }, (_, seed) => seed + 1)

const readings = (name: string) => SEEDS.flatMap((seed) => live(kindNamed(name), seed, SMALL).readings)

const inRuns = (names: string[], isOfEach = false) => names.slice(0, LONG ? names.length : Number(isOfEach))

it.each(inRuns(['deletions', 'append', 'front', 'random place'], true))(
  'a walk over a list that moves in one way is repaired in one pass, asks for few pages again, and misses nothing: %s',
  (name) => {
    for (const { coverage, passes, missed, extra } of readings(name)) {
      const seen = { isTrusted: isTrusted({ coverage }), passes, missed }
      expect(seen).toEqual({ isTrusted: true, passes: 1, missed: 0 })
      expect(extra).toBeLessThan(12)
    }
  },
)

it.each(inRuns(['deletions + random place', 'ties in 5 % of pairs, still'], true))(
  'what came twice without a rise is looked for, instead of reading all again: %s',
  (name) => {
    for (const { coverage, passes, extra } of readings(name)) {
      expect({ isTrusted: isTrusted({ coverage }), passes }).toEqual({ isTrusted: true, passes: 1 })
      expect(extra).toBeLessThan(40)
    }
  },
)

it.each(inRuns(['still', 'still + an hour']))(
  'a walk over a list that does not move is steady, with a page for itself and one for each resume: %s',
  (name) => {
    const pages = name === 'still' ? 1 : 2
    for (const { coverage, extra, missed } of readings(name)) {
      const seen = { coverage, pages: (extra * SMALL.pages) / 100, missed }
      expect(seen).toEqual({ coverage: 'steady', pages, missed: 0 })
    }
  },
)

const MIXED = [
  'all',
  'all + an hour',
  'deletions + append',
  'resonance',
  'swaps, each ten minutes',
  'updates anywhere',
]

it.each(inRuns(MIXED, true))(
  'two walks over a list that moves never agree on an item that is there being gone: %s',
  (name) => {
    const wrong = SEEDS.map((seed) => live(kindNamed(name), seed, SMALL).wronglyRemoved ?? 0)

    expect(wrong).toEqual(SEEDS.map(() => 0))
  },
)

it.each(inRuns(['re-sorted by the minute']))(
  'a walk over a list %s is drifted unless all passes together saw all items, and no pass asks for more than twice its pages',
  (name) => {
    for (const { coverage, missed, extra } of readings(name)) {
      expect(coverage === 'drifted' || missed === 0).toBe(true)
      expect(extra).toBeLessThanOrEqual(500)
    }
  },
)
