import { describe, expect, it } from 'vitest'
import { parseDuration } from '../../src/config/fields.ts'

describe('parseDuration', () => {
  it.each([
    ['30s', 30_000],
    ['5m', 300_000],
    ['007s', 7000],
    ['36500d', 3_153_600_000_000],
    ['36501d', null],
    ['0s', null],
    ['-5s', null],
    ['1.5h', null],
    ['5', null],
    ['5 s', null],
    ['5w', null],
    ['5s\n', null],
  ])('reads %j as %j', (text, expected) => {
    expect(parseDuration(text)).toBe(expected)
  })
})
