import { describe, expect, it } from 'vitest'
import { parseMoment, timestamp } from '../../src/sandbox/calendar.ts'

describe('timestamp', () => {
  it('has six digits of a second and ends with Z', () => {
    expect(timestamp(Date.UTC(2026, 10, 20, 8, 30) / 1000)).toBe('2026-11-20T08:30:00.000000Z')
  })
})

describe('parseMoment', () => {
  it.each([
    ['2026-11-20', Date.UTC(2026, 10, 20)],
    ['2026-11-20T08:30', Date.UTC(2026, 10, 20, 8, 30)],
    ['2026-11-20 08:30:15', Date.UTC(2026, 10, 20, 8, 30, 15)],
    ['2026-11-20T08:30:00Z', Date.UTC(2026, 10, 20, 8, 30)],
    ['2026-11-20T08:30:00.500000Z', Date.UTC(2026, 10, 20, 8, 30, 0, 500)],
    ['2026-11-20T08:30:00+01:00', Date.UTC(2026, 10, 20, 7, 30)],
    ['2024-02-29', Date.UTC(2024, 1, 29)],
  ])('reads %s', (text, milliseconds) => {
    expect(parseMoment(text)).toBe(milliseconds / 1000)
  })

  it.each([
    '',
    'yesterday',
    '2026',
    '2026-13-01',
    '2026-02-30',
    '2026-11-20T25:00',
    '2026-11-20T08:30:00 01:00',
    '20.11.2026',
  ])('refuses "%s"', (text) => {
    expect(parseMoment(text)).toBeNull()
  })
})
