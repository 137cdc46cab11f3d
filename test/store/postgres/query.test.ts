import { describe, expect, it } from 'vitest'
import { withPlaceholders } from '../../../src/store/postgres/query.ts'

const VALUES = [
  ['a', '1'],
  ['b', 'x'],
] as const

describe('the parameters of a statement', () => {
  it.each<[sql: string, text: string, names: string[]]>([
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
  ])('stand where names are: %j', (sql, text, names) => {
    const values = names.map((name) => new Map(VALUES).get(name as 'a'))
    expect(withPlaceholders(sql, VALUES)).toEqual({ text, values, names })
  })

  it.each([
    ['SELECT :a, :b, :c', /has the parameter :c; .*--param/],
    ["SELECT :a, ':b'", /--param b: the SQL has no such parameter/],
    ['SELECT :a, :b, $1', /has the parameter \$1; write :NAME/],
    ['SELECT :a, :b, \0', /NUL/],
  ])('are refused in %j', (sql, message) => {
    expect(() => withPlaceholders(sql, VALUES)).toThrow(message)
  })
})
