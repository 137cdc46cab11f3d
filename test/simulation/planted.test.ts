import { describe, expect, it } from 'vitest'
import { patchedBy } from '../helpers/patch.ts'
import { PLANTED_BUGS } from './planted.ts'
import { runSeeds } from './shards.ts'

describe('the simulation', () => {
  // Two at a time: each has a process of its own, which takes longer to load the program than to find the mistake.
  it.concurrent.each(PLANTED_BUGS)('finds that $name', { timeout: 120_000 }, async ({ patches, seed }) => {
    const { failed, first } = await runSeeds({ from: seed, seeds: 1, env: patchedBy(...patches) })

    expect({ failed, seed: first?.seed }).toEqual({ failed: 1, seed })
    // Else it would have to fail without the mistake, too.
    expect(seed).toBeLessThan(2000)
  })
})
