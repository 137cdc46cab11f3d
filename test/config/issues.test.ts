import { describe, expect, it } from 'vitest'
import { editDistance, nearest } from '../../src/config/issues.ts'

describe('nearest', () => {
  const known = ['schedule', 'timezone', 'maxPasses', 'http', 'id']

  it.each([
    ['scheduel', 'schedule'],
    ['TimeZone', 'timezone'],
    ['max_passes', 'maxPasses'],
    ['maxpass', 'maxPasses'],
    ['htpp', 'http'],
    ['ids', 'id'],
    ['cron', null],
    ['', null],
  ])('finds for %j %j', (word, expected) => {
    expect(nearest(word, known)).toBe(expected)
  })

  it('finds nothing among nothing', () => {
    expect(nearest('x', [])).toBeNull()
  })
})

describe('editDistance', () => {
  it.each([
    ['', '', 0],
    ['', 'abc', 3],
    ['abc', '', 3],
    ['abc', 'abc', 0],
    ['abc', 'abd', 1],
    ['abc', 'ab', 1],
    ['abc', 'abxc', 1],
    ['abcd', 'abdc', 1],
    ['kitten', 'sitting', 3],
  ])('from %j to %j is %i', (from, to, expected) => {
    expect(editDistance(from, to)).toBe(expected)
  })
})
