import { describe, expect, it } from 'vitest'
import { carriedFilters, parseQuery, readFilters } from '../../src/sandbox/selection.ts'

describe('carriedFilters', () => {
  it.each([
    ['state=paid&page=2', 'state=paid'],
    ['page=2&state=paid&zone=x', 'state=paid&zone=x'],
    ['state=&zone=x&note=%20', 'zone=x'],
    ['state[]=paid', 'state%5B0%5D=paid'],
    ['state[]=paid&zone=x&state[]=shipped', 'state%5B0%5D=paid&state%5B1%5D=shipped&zone=x'],
    ['created_from=2026-11-20T08:30:00%2B01:00', 'created_from=2026-11-20T08%3A30%3A00%2B01%3A00'],
    ['q=a+b&r=(*)!', 'q=a%20b&r=%28%2A%29%21'],
  ])('of "%s" is "%s"', (search, carried) => {
    expect(carriedFilters(parseQuery(search))).toBe(carried)
  })
})

describe('readFilters', () => {
  it.each([
    ['', { states: null, createdFrom: null }],
    ['state=&created_from=', { states: null, createdFrom: null }],
    ['state[]=paid&state[]=shipped', { states: ['paid', 'shipped'], createdFrom: null }],
    ['created_from=2026-11-20', { states: null, createdFrom: Date.UTC(2026, 10, 20) / 1000 }],
    ['created_from=soon', 'created_from'],
    ['created_from[]=2026-11-20', 'created_from'],
    // An unencoded plus is a space.
    ['created_from=2026-11-20T08:30:00+01:00', 'created_from'],
  ])('of "%s"', (search, filters) => {
    expect(readFilters(parseQuery(search))).toEqual(filters)
  })
})
