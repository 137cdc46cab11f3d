import { describe, expect, it } from 'vitest'
import { patchedBy } from '../helpers/patch.ts'
import { PLANTED_BUGS } from './planted.ts'
import { runSeeds } from './shards.ts'

/**
 * A step more or less in the program shifts where processes are killed, and a seed may no longer find what it found: so
 * its neighbours are tried, too. Where none of them does, `npm run simulate -- --planted` finds another one.
 */
const NEIGHBOURS = 40

describe('the simulation', () => {
  it.concurrent.each(PLANTED_BUGS)('finds that $name', { timeout: 120_000 }, async ({ patches, seed }) => {
    const seeds = { from: seed, seeds: NEIGHBOURS, stopAtFirst: true, processes: 1 }

    const { failed, first } = await runSeeds({ ...seeds, env: patchedBy(...patches) })

    expect(failed).toBe(1)
    // Those are known to keep all promises without the mistake.
    expect(first?.seed).toBeLessThan(2000)
  })
})
