import { describe, expect, it } from 'vitest'
import { findBug } from './find-bug.ts'
import { PLANTED_BUGS } from './planted.ts'

/**
 * A step more or less in the program shifts where processes are killed, and a seed may no longer find what it found: so
 * its neighbours are tried, too. Where none of them does, `npm run simulate -- --planted` finds another one.
 */
const NEIGHBOURS = 40

/** Histories without a mistake are lived through by a test of their own. */
const MEASURED = PLANTED_BUGS.filter(({ found }) => 'list' in found)

describe('the simulation', () => {
  it.concurrent.each(PLANTED_BUGS)('finds that $name', { timeout: 240_000 }, async (planted) => {
    const from = 'seed' in planted.found ? planted.found.seed : 0

    const found = await findBug(planted, { from, seeds: NEIGHBOURS, processes: 1 })

    expect(found).not.toBeNull()
    // Those are known to keep all promises without the mistake.
    expect(found?.seed ?? 0).toBeLessThan(2000)
  })

  it.concurrent.each(MEASURED)(
    'finds nothing where it would find that $name',
    { timeout: 240_000 },
    async (planted) => {
      expect(await findBug({ ...planted, patches: [] }, { from: 0, seeds: 0 })).toBeNull()
    },
  )
})
