import { describe, expect, it } from 'vitest'
import { PLANTED_BUGS } from './planted.ts'
import { runSeeds } from './shards.ts'

describe('the story of a history', () => {
  it('is the same whenever its seed is told again', async () => {
    const once = await runSeeds({ only: [2] })
    const again = await runSeeds({ only: [2] })

    expect(again.whole).toBe(once.whole)
    expect(once.whole.split('\n').length).toBeGreaterThan(20)
  })

  it('ends with what went wrong, and is short', async () => {
    const [planted] = PLANTED_BUGS

    const { first } = await runSeeds({ only: [planted?.seed ?? 0], planted: planted?.name ?? '' })

    const lines = first?.story.split('\n') ?? []
    expect(lines.length).toBeGreaterThan(5)
    expect(lines.length).toBeLessThanOrEqual(80)
    expect(lines.at(-1)).toMatch(/^ +\d+\.\d{3} s {2}\S/)
  })
})
