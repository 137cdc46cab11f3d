import { describe, expect, it } from 'vitest'
import { LONG } from '../../helpers/long.ts'
import { createRandom } from '../../simulation/random.ts'
import { kindNamed } from './kinds.ts'
import { isTrusted, live, SETTING } from './measure.ts'
import { slice } from './serving.ts'
import { rowText, summarize } from './table.ts'

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

describe('the summary of many walks', () => {
  const steady = {
    coverage: 'steady' as const,
    passes: 1,
    extra: 0.03,
    missed: 0,
    expectedMissed: 0,
    asked: {},
  }
  const repaired = {
    coverage: 'repaired' as const,
    passes: 1,
    extra: 4,
    missed: 3,
    expectedMissed: 2.4,
    asked: {},
  }
  const drifted = {
    coverage: 'drifted' as const,
    passes: 3,
    extra: 200,
    missed: 9,
    expectedMissed: null,
    asked: {},
  }

  it.each([
    {
      histories: [{ readings: [steady, steady], wronglyRemoved: 0 }],
      line: '| some | 0.03 % / 0.03 % / 0.03 % | steady | 0 % | 0 | - | 0 of 1 |',
    },
    {
      histories: [
        { readings: [steady, repaired], wronglyRemoved: 2 },
        { readings: [repaired, drifted], wronglyRemoved: null },
      ],
      line:
        '| some | 52.01 % / 200 % / 200 % | steady 25 %, repaired 50 %, drifted 25 % | ' +
        '66.67 % | 2 | 3, 2.4, 0.8 | 1 of 1 |',
    },
    {
      histories: [{ readings: [drifted], wronglyRemoved: null }],
      line: '| some | 200 % / 200 % / 200 % | drifted | - | - | - | 0 of 0 |',
    },
  ])(
    'counts what the trusted ones missed, and pairs that would take away what is there: $line',
    ({ histories, line }) => {
      expect(rowText(summarize('some', histories))).toBe(line)
    },
  )
})

describe('a list with equal sort keys', () => {
  it('has full pages, and loses or repeats items at their boundaries', () => {
    const list = { ids: Array.from({ length: 20 }, (_, id) => id), next: 20, random: createRandom(1).next }
    const read = () => [...slice(list, 0, 5, () => true), ...slice(list, 5, 10, () => true)]

    const readings = Array.from({ length: 100 }, read)

    expect(readings.map(({ length }) => length)).toEqual(readings.map(() => 10))
    expect(new Set(readings.map((ids) => new Set(ids).size))).toEqual(new Set([9, 10]))
    for (const ids of readings) for (const id of [0, 1, 2, 3, 6, 7, 8, 9]) expect(ids).toContain(id)
  })
})
