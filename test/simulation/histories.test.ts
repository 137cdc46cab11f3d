import { expect, it } from 'vitest'
import { LONG } from '../helpers/long.ts'
import { rotatingFrom, runSeeds, seedsFrom } from './shards.ts'

const SEEDS = LONG ? seedsFrom(rotatingFrom(10_000), 10_000) : seedsFrom(0, 60)

/** Less than this of each in 60 histories would be a simulation of nothing. */
const FLOORS = {
  killed: 20,
  'taken over': 30,
  'walk gone on with': 20,
  busy: 100,
  locked: 15,
  signalled: 15,
  'answer 401': 8,
  'answer 429': 12,
  'answer 503': 20,
  resumed: 20,
  'token replaced': 10,
  'moved: repaired': 7,
  'removed: removed': 40,
  'removed: out_of_scope': 40,
  'removals go': 4,
  'brake holds': 30,
  'brake lifted': 6,
  'refresh succeeded': 150,
  'claim of a list that cannot hide anything': 200,
}

it(`keeps its promises in ${SEEDS.length} random histories from seed ${SEEDS[0]} on, in which everything happens often`, async () => {
  const { passed, failed, first, counts } = await runSeeds({ seeds: SEEDS })

  expect(first && `seed ${first.seed}: ${first.complaint}\n${first.story}`).toBeNull()
  expect({ passed, failed }).toEqual({ passed: SEEDS.length, failed: 0 })
  const rare = Object.entries(FLOORS).filter(([what, least]) => (counts[what] ?? 0) < least)
  expect(rare).toEqual([])
  // As much happens to these small lists between two requests as to few real ones in an hour: of trusted walks, few may have missed something.
  const { 'trusted walk that missed something': missed = 0, 'moved: repaired': repaired = 0 } = counts
  expect(missed).toBeLessThanOrEqual(repaired / 50)
}, 10_800_000)

it('tells the same story whenever a seed is told again', async () => {
  const [once] = (await runSeeds({ seeds: [2] })).lived
  const [again] = (await runSeeds({ seeds: [2] })).lived

  expect(again).toEqual(once)
  expect(once?.story.split('\n').length).toBeGreaterThan(20)
})
