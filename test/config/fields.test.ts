import { describe, expect, it } from 'vitest'
import { findPathProblem, parseBaseUrl, parseDuration } from '../../src/config/fields.ts'

describe('parseBaseUrl', () => {
  it.each([
    ['https://admin.example.com/', 'https://admin.example.com'],
    ['HTTPS://Admin.Example.com:443/', 'https://admin.example.com'],
    ['http://127.0.0.1:8080/a/b//', 'http://127.0.0.1:8080/a/b'],
  ])('turns %j into %j', (text, value) => {
    expect(parseBaseUrl(text)).toEqual({ value })
  })

  it.each([
    ['admin.example.com', 'must be an http or https address'],
    ['https://a\\b', 'must be an http or https address'],
    ['https://user:pass@x', 'user name or password'],
    ['https://x?a=1', 'query or fragment'],
  ])('refuses %j', (text, problem) => {
    expect(parseBaseUrl(text)).toEqual({ problem: expect.stringContaining(problem) })
  })
})

describe('findPathProblem', () => {
  it.each(['/', '/a', '/a/b/', '/a..b', '/é', '/...'])('accepts %j', (text) => {
    expect(findPathProblem(text)).toBeNull()
  })

  it.each([
    ['a', 'begin with one /'],
    ['/a\u0000', 'begin with one /'],
    ['/a?x', 'query or fragment'],
    ['/a/%2E%2e/b', '. or ..'],
    ['/a/./b', '. or ..'],
  ])('refuses %j', (text, problem) => {
    expect(findPathProblem(text)).toContain(problem)
  })
})

describe('parseDuration', () => {
  it.each([
    ['500ms', 500],
    ['30s', 30_000],
    ['007s', 7000],
    ['36500d', 3_153_600_000_000],
    ['36501d', null],
    ['0s', null],
    ['1.5h', null],
    ['5 s', null],
    ['5s\n', null],
  ])('reads %j as %j', (text, expected) => {
    expect(parseDuration(text)).toBe(expected)
  })
})
