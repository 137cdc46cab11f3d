import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config/problems.ts'
import { readConfigFile } from '../../src/config/yaml.ts'
import { errorOf, load, makeFolder, SMALLEST } from './config-files.ts'

describe('a configuration file', () => {
  it('that does not exist is reported with how to write one', () => {
    const file = join(makeFolder(), 'nothing.yaml')

    expect(() => readConfigFile(file)).toThrow(ConfigError)
    expect(() => readConfigFile(file)).toThrow(
      `${file}  there is no such configuration file. To make one, copy config/admin-mirror.example.yaml`,
    )
  })

  it('that is a folder is refused', () => {
    expect(() => readConfigFile(makeFolder())).toThrow('this is a folder')
  })

  it.each(['', '\n\n', '# nothing\n', '---\n', 'null\n'])('of %j is empty', (text) => {
    const { problems } = errorOf(text)

    expect(problems).toEqual([
      { key: '', line: null, column: null, message: expect.stringContaining('is empty. To fill it, copy') },
    ])
  })

  it('that is not UTF-8 is refused, and a byte order mark is not part of the first key', () => {
    expect(errorOf(Buffer.from('\uFEFFapi: {}', 'utf16le')).message).toContain('not UTF-8 text')
    expect(load(`\uFEFF${SMALLEST.replaceAll('\n', '\r\n')}`).api.baseUrl).toBe('https://admin.example.com')
  })

  it.each<[text: string, line: number, column: number, message: string]>([
    ['- a\n', 1, 1, 'must be a mapping'],
    ['api:\n\tbaseUrl: x\n', 2, 1, 'a tab cannot indent'],
    ['api:\n  a: 1\n b: 2\n', 3, 1, 'Keys of one level begin in the same column'],
    ['a: 1\n---\nb: 2\n', 2, 1, 'The file holds one: remove the line ---'],
    ['schedule: */15 * * * *\n', 1, 16, 'must be in quotes. Write it like "*/15 * * * *"'],
    [`http: { port: \${PORT} }\n`, 1, 16, `Write "\${NAME}"`],
    ['a: b: c\n', 1, 4, 'a second "key:" begins'],
    ['a: "b\n', 2, 1, 'Close what was opened'],
    ['a: "\\q"\n', 1, 5, 'a backslash in double quotes'],
    ['organizations:\n  - id: 7\n   name: acme\n', 3, 1, 'the indentation does not fit'],
    ['api:\n  timeout: 1s\n    baseUrl: x\n', 2, 12, 'the next line: the indentation does not fit'],
  ])('that begins %j is refused at %i:%i', (text, line, column, message) => {
    const problem = errorOf(text).problems.find((candidate) => candidate.message.includes(message))

    expect(problem).toBeDefined()
    if (line > 0) expect(problem?.line).toBe(line)
    if (column > 0) expect(problem?.column).toBe(column)
  })

  it('is not quoted where its syntax is wrong, which may be at the token', () => {
    for (const text of [
      SMALLEST.replace('token: ', 'token:'),
      SMALLEST.replace('token: ', 'token: "x" '),
      SMALLEST.replace('token: ', 'token: @'),
      SMALLEST.replace('token: ', 'token: x: '),
      SMALLEST.replace('token: ', 'token: !'),
      SMALLEST.replace('token: ', 'token: *'),
      SMALLEST.replace('token: ', '"token:').replace('of-acme', 'of-acme": x'),
    ]) {
      expect(errorOf(text).message).not.toContain('secret-of-acme')
    }
  })

  it('of aliases that multiply is refused before it fills the memory', () => {
    const levels = Array.from({ length: 12 }, (_, level) => {
      const parts = level === 0 ? ['x'] : Array.from({ length: 10 }, () => `*a${level - 1}`)
      return `a${level}: &a${level} [${parts.join(', ')}]`
    })

    expect(errorOf(levels.join('\n')).message).toContain('repeat too much')
  })

  it('with an alias inside its own anchor is refused', () => {
    expect(errorOf(`${SMALLEST}collections: &c { orders: *c }\n`).message).toContain(
      ':7:27  this is an alias (*name), inside its own anchor',
    )
  })
})
