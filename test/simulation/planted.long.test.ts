import { afterAll, describe, expect, it } from 'vitest'
import { startPostgres } from '../helpers/postgres.ts'
import { PLANTED_BUGS } from './planted.ts'
import { runSeeds, seedsFrom } from './shards.ts'

/**
 * A step more or less in the program shifts where processes are killed, and a seed may no longer find what it found: so its neighbours are tried,
 * too. Where none of them does, more of them may.
 */
const NEIGHBOURS = { inFile: 40, onServer: 12 }

const server = await startPostgres()
afterAll(() => server.stop())

describe('the simulation', () => {
  it.each(PLANTED_BUGS)('finds that $name', { timeout: 600_000 }, async (bug) => {
    const { name, seed: from, complaint, isOnServer = false } = bug
    if (isOnServer && server.missing !== null) return
    const url = isOnServer ? server.url : undefined
    const seeds = seedsFrom(from, isOnServer ? NEIGHBOURS.onServer : NEIGHBOURS.inFile)

    const { first: found } = await runSeeds({ planted: name, seeds, url })

    expect(found?.complaint).toMatch(complaint)
    expect(found?.story).toMatch(/^ +\d+\.\d{3} s {2}\S.*$/m)
    // The same history keeps all promises without the mistake.
    const sound = await runSeeds({ seeds: [found?.seed ?? from], url })
    expect(sound.first).toBeNull()
  })
})
