import { expect, it } from 'vitest'
import { kindNamed } from './kinds.ts'
import { isTrusted, live } from './measure.ts'

// Lines of the table of coverage, with bounds that were measured on more walks: small lists, read so slowly that as much happens as on a
// long one.

const PAGES = 400
const CLEAN = { trusted: true, passes: 1, missed: 0 }

it.each([
  ['deletions', CLEAN, 12],
  // What came twice without a rise is looked for, instead of reading all again.
  ['deletions + random place', { trusted: true, passes: 1 }, 40],
  ['append', CLEAN, 12],
  ['front', CLEAN, 12],
  ['random place', CLEAN, 12],
  ['ties in 5 % of pairs, still', { trusted: true, passes: 1 }, 40],
  // A page for itself, and one for each resume.
  ['still + an hour', { coverage: 'steady', missed: 0 }, 200 / PAGES],
  ['resonance', { trusted: true }, 40],
  ['all + an hour', {}, 200],
  ['swaps, each ten minutes', {}, 200],
  ['updates anywhere', { trusted: true }, 300],
])(
  'walks over a list ask for few pages again, know what they saw, and never agree on an item that is there being gone: %s',
  (kind, shown, most) => {
    for (const seed of [1, 2, 3, 4]) {
      const { readings, wronglyRemoved } = live(kindNamed(kind), seed, PAGES)
      expect(wronglyRemoved ?? 0).toBe(0)
      for (const reading of readings) {
        expect({ ...reading, trusted: isTrusted(reading) }).toMatchObject(shown)
        expect(reading.extra).toBeLessThanOrEqual(most)
      }
    }
  },
)
