import { afterAll, describe, expect, it } from 'vitest'
import { startPostgres } from '../../helpers/postgres.ts'
import { PLANTED_BUGS } from '../planted.ts'
import { runSeeds } from '../shards.ts'

/**
 * Where a step more or less in the program shifts where workers are cut off, a seed may no longer find what it found: then
 * its neighbours are tried, too. `npm run simulate -- --store postgres --planted` finds another one.
 */
const NEIGHBOURS = 12

const server = await startPostgres()
afterAll(() => server.stop())
const { url } = server

describe.skipIf(server.missing !== null)('the simulation on a PostgreSQL server', () => {
  const bugs = PLANTED_BUGS.filter(({ isOnServer }) => isOnServer)
  it.each(bugs)('finds that $name', { timeout: 600_000 }, async ({ name, seed: from, complaint }) => {
    const { first: found } = await runSeeds({ planted: name, from, seeds: NEIGHBOURS, url })

    expect(found?.complaint).toMatch(complaint)
    // The same history keeps all promises without the mistake.
    const sound = await runSeeds({ only: [found?.seed ?? from], url })
    expect(sound.first).toBeNull()
  })
})
