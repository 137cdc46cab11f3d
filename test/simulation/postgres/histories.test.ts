import { describe, expect, it } from 'vitest'
import { LONG } from '../../helpers/long.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { rareOf } from '../counts.ts'
import { rotatingFrom, runSeeds } from '../shards.ts'
import { SCENES_FROM } from './scenes.ts'

const many = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index)

const [RANDOM, SCENES] = LONG ? [500, 500] : [1, 5]

/**
 * Random histories and short scenes; and seeds by which a mistake was ever found, beside those of planted bugs and the first scenes. Seeds 0
 * and 7060 take ten seconds and more.
 */
const SEEDS = [
  ...many(LONG ? rotatingFrom(500) : 41, RANDOM),
  ...many(SCENES_FROM, SCENES),
  15,
  1_000_032,
  ...(LONG ? [0, 7060] : []),
]

/** So often each of these happens in 40 histories, at least; less would be a simulation of nothing. */
const FLOORS: Record<string, number> = {
  killed: 15,
  'cut off': 15,
  halted: 8,
  locked: 6,
  'taken over': 15,
  overtaken: 4,
  'walk gone on with': 15,
  'answer 401': 6,
  'answer 503': 5,
  'token replaced': 1,
  signalled: 1,
  resumed: 6,
  '2 processes at once': 15,
  '3 processes at once': 6,
  '2 at work at once': 5,
}

/** Of those floors; there is chance in how often it happens in others. */
const SHARE = RANDOM / 40 / 2

const server = await openDatabase()
describe.skipIf(server.missing !== null)('workers on a PostgreSQL server', () => {
  it(`keep all promises in ${SEEDS.length} histories from seed ${SEEDS[0]} on, in which everything happens often`, async () => {
    const { failed, first, counts } = await runSeeds({ only: SEEDS, url: server.url })

    expect(first && `seed ${first.seed}: ${first.complaint}\n${first.story}`).toBeNull()
    expect(failed).toBe(0)
    expect(rareOf(counts, FLOORS, SHARE)).toEqual([])
  }, 7_200_000)
})
