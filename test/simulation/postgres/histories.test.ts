import { afterAll, describe, expect, it } from 'vitest'
import { LONG } from '../../helpers/long.ts'
import { startPostgres } from '../../helpers/postgres.ts'
import { rareOf } from '../counts.ts'
import { rotatingFrom } from '../rotating.ts'
import { runSeeds } from '../shards.ts'
import { SCENES_FROM } from './scenes.ts'

/** How many random histories are played, and how many short scenes. */
const RANGE = LONG ? { from: rotatingFrom(500), seeds: 500 } : { from: 41, seeds: 2 }
const SCENES = LONG ? 500 : 5

/** Seeds by which a mistake was ever found, beside those of planted bugs and the first scenes. Seeds 0 and 7060 take ten seconds and more. */
const FOUND = [15, 1_000_032, ...(LONG ? [0, 7060] : [])]

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
const SHARE = RANGE.seeds / 40 / 2

const server = await startPostgres()
afterAll(() => server.stop())
const { url } = server

describe.skipIf(server.missing !== null)('workers on a PostgreSQL server', () => {
  it(`keep all promises in ${RANGE.seeds} random histories from seed ${RANGE.from} on, in which everything happens often`, async () => {
    const { failed, first, counts } = await runSeeds({ ...RANGE, url })

    expect(first && `seed ${first.seed}: ${first.complaint}\n${first.story}`).toBeNull()
    expect(failed).toBe(0)
    expect(rareOf(counts, FLOORS, SHARE)).toEqual([])
  }, 7_200_000)

  it.each([
    ['short scenes of two workers', { from: SCENES_FROM, seeds: SCENES }],
    ['histories that have found a mistake', { only: FOUND }],
  ])(
    'keep them in %s',
    async (_name, seeds) => {
      const { failed, first } = await runSeeds({ ...seeds, url })

      expect(first && `seed ${first.seed}: ${first.complaint}\n${first.story}`).toBeNull()
      expect(failed).toBe(0)
    },
    7_200_000,
  )
})
