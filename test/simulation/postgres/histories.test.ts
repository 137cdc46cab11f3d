import { describe, expect, it } from 'vitest'
import { LONG } from '../../helpers/long.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { rotatingFrom, runSeeds, seedsFrom } from '../shards.ts'
import { SCENES_FROM } from './scenes.ts'

/** Short scenes; with LONG=1 many, and random histories: some take ten seconds and more. */
const SEEDS = LONG
  ? [...seedsFrom(rotatingFrom(500), 500), ...seedsFrom(SCENES_FROM, 500)]
  : seedsFrom(SCENES_FROM, 6)

const server = await openDatabase()
describe.skipIf(server.missing !== null)('workers on a PostgreSQL server', () => {
  it(`keep all promises in ${SEEDS.length} histories from seed ${SEEDS[0]} on`, async () => {
    const { failed, first } = await runSeeds({ seeds: SEEDS, url: server.url })

    expect(first && `seed ${first.seed}: ${first.complaint}\n${first.story}`).toBeNull()
    expect(failed).toBe(0)
  }, 7_200_000)
})
