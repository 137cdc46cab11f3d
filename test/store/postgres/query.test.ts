import { expect, it } from 'vitest'
import { withPlaceholders } from '../../../src/store/postgres/query.ts'

const VALUES = [
  ['a', '1'],
  ['b', 'x'],
] as const

it.each<[sql: string, text: string, values: string[]]>([
  ['SELECT :a, :b, :a', 'SELECT $1, $2, $1', ['1', 'x']],
  ['SELECT :b::text,:a', 'SELECT $1::text,$2', ['x', '1']],
  ['SELECT x::a, f(b := :b), :a', 'SELECT x::a, f(b := $1), $2', ['x', '1']],
  ["SELECT ':a', 'it''s :a', :a, :b", "SELECT ':a', 'it''s :a', $1, $2", ['1', 'x']],
  ['SELECT ":a", "x"":b", :a, :b', 'SELECT ":a", "x"":b", $1, $2', ['1', 'x']],
  ['SELECT l[1:2], l[:a], :b', 'SELECT l[1:2], l[$1], $2', ['1', 'x']],
  [
    String.raw`SELECT E'it\'s :c', $$:d$$, :a, :b`,
    String.raw`SELECT E'it\'s :c', $$:d$$, $1, $2`,
    ['1', 'x'],
  ],
  ["SELECT :a -- it's not :c\n, :b -- :d", "SELECT $1 -- it's not :c\n, $2 -- :d", ['1', 'x']],
  ["SELECT :a /* it's not\n :c */, ':b--', :b", "SELECT $1 /* it's not\n :c */, ':b--', $2", ['1', 'x']],
])('parameters stand where names are: %j', (sql, text, values) => {
  expect(withPlaceholders(sql, VALUES)).toEqual({ text, values })
})

it.each([
  ['SELECT :a, :b, :c', /has the parameter :c; .*--param/],
  ["SELECT :a, ':b'", /--param b: the SQL has no such parameter/],
  ['SELECT :a, :b, \0', /NUL/],
])('parameters are refused in %j', (sql, message) => {
  expect(() => withPlaceholders(sql, VALUES)).toThrow(message)
})
