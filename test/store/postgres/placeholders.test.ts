import { describe, expect, it } from 'vitest'
import { withPlaceholders } from '../../../src/store/postgres/read/query.ts'

const VALUES = new Map([
  ['a', '1'],
  ['b', 'x'],
])

describe('withPlaceholders', () => {
  const cases: [sql: string, text: string, names: string[]][] = [
    ['SELECT :a, :b, :a', 'SELECT $1, $2, $1', ['a', 'b']],
    ['SELECT :b::text,:a', 'SELECT $1::text,$2', ['b', 'a']],
    ['SELECT x::a, f(b := :b), :a', 'SELECT x::a, f(b := $1), $2', ['b', 'a']],
    ["SELECT ':a', 'it''s :a', :a, :b", "SELECT ':a', 'it''s :a', $1, $2", ['a', 'b']],
    [String.raw`SELECT E'\':a', e'\\', :a, :b`, String.raw`SELECT E'\':a', e'\\', $1, $2`, ['a', 'b']],
    [String.raw`SELECT '\', :a, true'\', :b`, String.raw`SELECT '\', $1, true'\', $2`, ['a', 'b']],
    ['SELECT ":a", "x"":b", :a, :b', 'SELECT ":a", "x"":b", $1, $2', ['a', 'b']],
    ['SELECT 1 -- :a\n, :a, :b', 'SELECT 1 -- :a\n, $1, $2', ['a', 'b']],
    ['SELECT /* :a\n */ :a, :b /* :c', 'SELECT /* :a\n */ $1, $2 /* :c', ['a', 'b']],
    ['SELECT $$:a$$, $x$ $$ :a $x$, :a, :b', 'SELECT $$:a$$, $x$ $$ :a $x$, $1, $2', ['a', 'b']],
    ['SELECT n$a$, :a, n$a$, :b', 'SELECT n$a$, $1, n$a$, $2', ['a', 'b']],
    ['SELECT l[1:2], l[:a], :b', 'SELECT l[1:2], l[$1], $2', ['a', 'b']],
    ['SELECT "ä:a", ä, :a, :b', 'SELECT "ä:a", ä, $1, $2', ['a', 'b']],
  ]
  for (const [sql, text, names] of cases)
    it(`puts values where names are: ${JSON.stringify(sql)}`, () => {
      const values = names.map((name) => VALUES.get(name))
      expect(withPlaceholders(sql, VALUES)).toEqual({ text, values, names })
    })

  const wrong: [sql: string, message: RegExp][] = [
    ['SELECT :a, :b, :c', /has the parameter c; .*--param c=VALUE/],
    ["SELECT :a, ':b'", /--param b: the SQL has no such parameter/],
    ['SELECT :a, :b, $1', /has the parameter \$1; write :NAME/],
    ['SELECT :a, :b, \0', /NUL/],
  ]
  for (const [sql, message] of wrong)
    it(`refuses ${JSON.stringify(sql)}`, () => {
      expect(() => withPlaceholders(sql, VALUES)).toThrow(message)
    })

  it('reads a long statement in time that grows with its length alone', () => {
    const long = `SELECT ${"'".repeat(100_001)}${':a '.repeat(1)}${'$'.repeat(100_001)}${'/*'.repeat(50_000)}`
    expect(withPlaceholders(long, new Map()).names).toEqual([])
  })
})
