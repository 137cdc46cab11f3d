import { describe, expect, it } from 'vitest'
import { parseDuration } from '../../src/config/schema.ts'
import { errorOf, load, SMALLEST } from './config-files.ts'

const withAddress = (address: string) => SMALLEST.replace('https://admin.example.com', address)
const withPath = (path: string) => `${SMALLEST}collections: { orders: { path: "${path}" } }\n`

describe('the address of the API', () => {
  it.each([
    ['https://admin.example.com/', 'https://admin.example.com'],
    ['HTTPS://Admin.Example.com:443/', 'https://admin.example.com'],
    ['http://127.0.0.1:8080/a/b//', 'http://127.0.0.1:8080/a/b'],
  ])('turns %j into %j', (text, value) => {
    expect(load(withAddress(text)).api.baseUrl).toBe(value)
  })

  it.each([
    ['admin.example.com', 'must be the http or https address'],
    ['https://a\\b', 'must be the http or https address'],
    ['https://user:pass@x', 'user name or password'],
    ['https://x?a=1', 'query or fragment'],
  ])('refuses %j', (text, problem) => {
    expect(errorOf(withAddress(text)).message).toContain(problem)
  })
})

describe('the path of a collection', () => {
  it.each(['/', '/a', '/a/b/', '/a..b', '/é', '/...'])('accepts %j', (text) => {
    expect(load(withPath(text)).collections[0]?.path).toBe(text)
  })

  it.each([
    ['a', 'begin with one /'],
    ['/a\\u0000', 'begin with one /'],
    ['/a?x', 'query or fragment'],
    ['/a/%2E%2e/b', '. or ..'],
    ['/a/./b', '. or ..'],
  ])('refuses %j', (text, problem) => {
    expect(errorOf(withPath(text)).message).toContain(problem)
  })
})

describe('a duration', () => {
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
  ])('of %j is %j milliseconds', (text, expected) => {
    expect(parseDuration(text)).toBe(expected)
  })
})
