import { expect, it } from 'vitest'
import { LONG } from '../../helpers/long.ts'
import { kindNamed } from './kinds.ts'
import { isTrusted, live } from './measure.ts'

// Lines of the table of coverage, with bounds that were measured on more walks: small lists, read so slowly that as much happens as on a
// long one. The first two of each test in every run; all with LONG=1.

const PAGES = 400
const SEEDS = Array.from({ length: LONG ? 12 : 4 }, (_, seed) => seed + 1)

const histories = (kind: string) => SEEDS.map((seed) => live(kindNamed(kind), seed, PAGES))
const kinds = <T>(...all: T[]) => (LONG ? all : all.slice(0, 2))

it.each(
  kinds(
    ['deletions', { trusted: true, passes: 1, missed: 0 }, 12],
    // What came twice without a rise is looked for, instead of reading all again.
    ['deletions + random place', { trusted: true, passes: 1 }, 40],
    ['append', { trusted: true, passes: 1, missed: 0 }, 12],
    ['front', { trusted: true, passes: 1, missed: 0 }, 12],
    ['random place', { trusted: true, passes: 1, missed: 0 }, 12],
    ['ties in 5 % of pairs, still', { trusted: true, passes: 1 }, 40],
    // A page for itself, and one for each resume.
    ['still', { coverage: 'steady', missed: 0 }, 100 / PAGES],
    ['still + an hour', { coverage: 'steady', missed: 0 }, 200 / PAGES],
  ),
)('a walk over a list asks for few pages again, and knows what it saw: %s', (kind, shown, most) => {
  for (const reading of histories(kind).flatMap(({ readings }) => readings)) {
    expect({ ...reading, trusted: isTrusted(reading) }).toMatchObject(shown)
    expect(reading.extra).toBeLessThanOrEqual(most)
  }
})

it.each(
  kinds(
    'all',
    'all + an hour',
    'deletions + append',
    'resonance',
    'swaps, each ten minutes',
    'updates anywhere',
  ),
)('two walks over a list that moves never agree on an item that is there being gone: %s', (kind) => {
  expect(histories(kind).filter(({ wronglyRemoved }) => (wronglyRemoved ?? 0) > 0)).toEqual([])
})

it.runIf(LONG)(
  'a walk over a list re-sorted by the minute is drifted unless all passes together saw all items, and no pass asks for more than twice its pages',
  () => {
    for (const reading of histories('re-sorted by the minute').flatMap(({ readings }) => readings)) {
      expect(reading.coverage === 'drifted' || reading.missed === 0).toBe(true)
      expect(reading.extra).toBeLessThanOrEqual(500)
    }
  },
)
