import { describe, expect, it } from 'vitest'
import { parseDuration } from '../../src/config/fields.ts'

describe('parseDuration', () => {
  it.each([
    ['500ms', 500],
    ['30s', 30_000],
    ['5m', 300_000],
    ['24h', 86_400_000],
    ['90d', 7_776_000_000],
    ['007s', 7000],
    ['36500d', 3_153_600_000_000],
    ['36501d', null],
    ['0s', null],
    ['00ms', null],
    ['-5s', null],
    ['1.5h', null],
    ['5', null],
    ['s', null],
    ['5 s', null],
    ['5S', null],
    ['5w', null],
    ['5s\n', null],
    ['', null],
  ])('reads %j as %j', (text, expected) => {
    expect(parseDuration(text)).toBe(expected)
  })
})
