import { describe, expect, it } from 'vitest'
import { parseExact } from '../../../src/json/exact.ts'
import { momentIn, readMoment } from '../../../src/sync/refresh/moment.ts'

const MINUTE = 60_000
const AT = Date.UTC(2026, 10, 20, 8, 30)

describe('a time of an API', () => {
  it.each([
    ['2026-11-20T08:30:00Z', AT, '2026-11-20T08:28:00Z', 1000],
    ['2026-11-20T08:30:00.000000Z', AT, '2026-11-20T08:28:00.000000Z', 1],
    ['2026-11-20T08:30:00.123456Z', AT + 123, '2026-11-20T08:28:00.123000Z', 1],
    ['2026-11-20T08:30:00.5+00:00', AT + 500, '2026-11-20T08:28:00.5+00:00', 1],
    ['2026-11-20T09:30:00+01:00', AT, '2026-11-20T09:28:00+01:00', 1000],
    ['2026-11-20T03:00:00-0530', AT, '2026-11-20T02:58:00-0530', 1000],
    ['2026-11-20 10:30:00+02', AT, '2026-11-20 10:28:00+02', 1000],
    ['2026-11-20 08:30:00', AT, '2026-11-20 08:28:00', 1000],
    ['2026-11-20 08:30', AT, '2026-11-20 08:28', MINUTE],
    ['2026-11-20', AT - 510 * MINUTE, '2026-11-19', 24 * 60 * MINUTE],
    ['1795163400', AT, '1795163280', 1000],
    ['1795163400123', AT + 123, '1795163280123', 1],
  ])('%s is read, and another one written like it', (text, ms, before, unit) => {
    const moment = readMoment(text)

    expect(moment?.ms).toBe(ms)
    expect(moment?.unit).toBe(unit)
    expect(moment?.write(ms - 2 * MINUTE)).toBe(before)
  })

  it.each([
    ['["soon"]', '0'],
    ['{ "at": null }', 'at'],
    ['{ "at": "0001-01-01T00:00:00Z" }', 'at'],
    ['{ "at": true }', 'at'],
    ['{ "at": "2026-11-20T25:30:00Z" }', 'at'],
    ['{ "at": "2026-13-20" }', 'at'],
    ['{ "at": "20.11.2026" }', 'at'],
    ['{ "at": 17 }', 'at'],
    ['{ "at": 1795163400.5 }', 'at'],
    ['{ "at": { "date": "2026-11-20" } }', 'at'],
    ['{}', 'constructor.name'],
    ['7', 'at'],
  ])('is none: %s at %s', (item, path) => {
    expect(momentIn(parseExact(item), path)).toBeNull()
  })

  it('stands behind a dotted path, as a text or a number', () => {
    expect(momentIn(parseExact('{ "meta": { "at": 1795163400 } }'), 'meta.at')?.ms).toBe(AT)
    expect(momentIn(parseExact('{ "at": "2026-11-20T08:30Z" }'), 'at')?.ms).toBe(AT)
  })
})
