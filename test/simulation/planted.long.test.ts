import { describe, expect, it } from 'vitest'
import { PLANTED_BUGS } from './planted.ts'
import { FAST, runSeeds } from './shards.ts'

/**
 * A step more or less in the program shifts where processes are killed, and a seed may no longer find what it found: so
 * its neighbours are tried, too. Where none of them does, `npm run simulate -- --planted` finds another one.
 */
const NEIGHBOURS = 40

describe('the simulation', () => {
  const bugs = PLANTED_BUGS.filter(({ isOnServer }) => !isOnServer)
  it.each(bugs)('finds that $name', { timeout: 240_000 }, async ({ name, seed: from, complaint }) => {
    const { first: found } = await runSeeds({ planted: name, from, seeds: NEIGHBOURS })

    expect(found?.complaint).toMatch(complaint)
    // Those are known to keep all promises without the mistake.
    expect(found?.seed).toBeLessThan(FAST.seeds)
    const lines = found?.story.split('\n') ?? []
    expect(lines.length).toBeGreaterThan(5)
    expect(lines.length).toBeLessThanOrEqual(80)
    expect(lines.at(-1)).toMatch(/^ +\d+\.\d{3} s {2}\S/)
  })
})
