import { describe, expect, it } from 'vitest'
import { nearest } from '../../src/config/problems.ts'

describe('nearest', () => {
  const known = ['schedule', 'timezone', 'maxPasses', 'http', 'id']

  it.each([
    ['scheduel', 'schedule'],
    ['TimeZone', 'timezone'],
    ['max_passes', 'maxPasses'],
    ['maxpass', 'maxPasses'],
    ['ids', 'id'],
    ['cron', null],
  ])('finds for %j %j', (word, expected) => {
    expect(nearest(word, known)).toBe(expected)
  })
})
