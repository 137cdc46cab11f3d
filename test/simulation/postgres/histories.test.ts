import { describe, expect, it } from 'vitest'
import { LONG } from '../../helpers/long.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { rotatingFrom, runSeeds } from '../shards.ts'
import { SCENES_FROM } from './scenes.ts'

const many = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index)

/** Short scenes, and one by which a mistake was ever found; with LONG=1 many, and random histories: some take ten seconds and more. */
const SEEDS = LONG
  ? [...many(rotatingFrom(500), 500), ...many(SCENES_FROM, 500), 0, 15, 41, 7060]
  : [...many(SCENES_FROM, 5), 1_000_032]

const server = await openDatabase()
describe.skipIf(server.missing !== null)('workers on a PostgreSQL server', () => {
  it(`keep all promises in ${SEEDS.length} histories from seed ${SEEDS[0]} on`, async () => {
    const { failed, first } = await runSeeds({ only: SEEDS, url: server.url })

    expect(first && `seed ${first.seed}: ${first.complaint}\n${first.story}`).toBeNull()
    expect(failed).toBe(0)
  }, 7_200_000)
})
