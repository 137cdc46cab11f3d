import { afterAll, describe, expect, it } from 'vitest'
import { startPostgres } from '../../helpers/postgres.ts'
import { findBug } from '../find-bug.ts'
import { SERVER_BUGS } from './planted.ts'

/**
 * Where a step more or less in the program shifts where workers are cut off, a seed may no longer find what it found: then
 * its neighbours are tried, too. `npm run simulate -- --store postgres --planted` finds another one.
 */
const NEIGHBOURS = 12

const server = await startPostgres()
afterAll(() => server.stop())

describe.skipIf(server.missing !== null)('the simulation on a PostgreSQL server', () => {
  it.each(SERVER_BUGS)('finds that $name', { timeout: 600_000 }, async (planted) => {
    const from = 'seed' in planted.found ? planted.found.seed : 0

    const found = await findBug(planted, { from, seeds: NEIGHBOURS, processes: 1 }, server.url)

    expect(found).not.toBeNull()
    // The same history keeps all promises without the mistake.
    const sound = { ...planted, patches: [] }
    expect(await findBug(sound, { from: found?.seed ?? from, seeds: 1, processes: 1 }, server.url)).toBeNull()
  })
})
