import { describe, expect, it } from 'vitest'
import { LONG } from '../../helpers/long.ts'
import { openDatabase } from '../../helpers/postgres.ts'
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

const server = await openDatabase()
describe.skipIf(server.missing !== null)('workers on a PostgreSQL server', () => {
  it(`keep all promises in ${SEEDS.length} histories from seed ${SEEDS[0]} on`, async () => {
    const { failed, first } = await runSeeds({ only: SEEDS, url: server.url })

    expect(first && `seed ${first.seed}: ${first.complaint}\n${first.story}`).toBeNull()
    expect(failed).toBe(0)
  }, 7_200_000)
})
