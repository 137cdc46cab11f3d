import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseExact } from '../../src/json/exact.ts'
import { type JsonValue, sameJson } from '../../src/json/value.ts'
import { jsonTexts, spoiled } from './arbitrary.ts'

const HELD = '0 -1 -0 1.10 20.0 2e1 0.0000001 9007199254740992 1e+18 0.30000000000000004'

describe('parseExact', () => {
  it.each(HELD.split(' '))('returns a plain number for %s', (text) => {
    expect(parseExact(`[${text}]`)).toEqual([Number(text)])
  })

  it.each([
    ['\\\\', '\\n'],
    ['C:\\\\', 'C:\\/'],
    ['\\n', 'plain (a name)'],
  ])('keeps apart names with escapes, which JSON.parse may confuse: %s and %s', (one, other) => {
    const names = [one, other].map((name) => Object.keys(parseExact(`{"h":[],"${name}":0}`) ?? {})[1])

    expect(names).toEqual([one, other].map((name) => JSON.parse(`"${name}"`)))
  })

  it('is as long as it likes, with escapes in it', () => {
    const note = `\n${'a'.repeat(12_000_000)}`

    for (const [name, value] of [
      ['note', '1'],
      ['a\nb', '1e400'],
    ] as const) {
      const text = `{"text":${JSON.stringify(note)},${JSON.stringify(name)}:${value}}`
      expect(parseExact(text)).toMatchObject({ text: note })
    }
  })

  it('has every value as the text has it, and is read from its own text as it was', () => {
    fc.assert(
      fc.property(jsonTexts, (text) => {
        const parsed = parseExact(text)
        const written = JSON.stringify(parsed)

        expect(sameJson(parsed, readTokens(text), new Set())).toBe(true)
        expect(JSON.stringify(parseExact(written))).toBe(written)
      }),
      { numRuns: 3000 },
    )
  })

  it('refuses exactly what JSON.parse refuses', () => {
    fc.assert(
      fc.property(spoiled(jsonTexts), (text) => {
        expect(errorOf(() => parseExact(text))).toBe(errorOf(() => JSON.parse(text)))
      }),
      { numRuns: 3000 },
    )
  })
})

/** Reads a valid text token by token, every number as it was written. */
function readTokens(text: string): JsonValue {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[-\d][-+.\deE]*|true|false|null|[{}[\],:]/g) ?? []
  const next = () => tokens.shift() ?? ''
  const read = (token: string): JsonValue => {
    if (token === '[') return list(']', (first) => read(first))
    if (token === '{') return Object.fromEntries(list('}', field))
    return /^[-\d]/.test(token) ? JSON.rawJSON(token) : JSON.parse(token)
  }
  const field = (name: string): [string, JsonValue] => {
    next()
    return [JSON.parse(name), read(next())]
  }
  const list = <T>(end: string, element: (first: string) => T): T[] => {
    const all: T[] = []
    for (let token = next(); token !== end; token = next()) if (token !== ',') all.push(element(token))
    return all
  }
  return read(next())
}

function errorOf(read: () => unknown): string | null {
  try {
    read()
    return null
  } catch (error) {
    return String(error)
  }
}
