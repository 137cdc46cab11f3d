import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Config } from '../../src/config/config.ts'
import { TokenFileError } from '../../src/config/token-file.ts'
import { load, SMALLEST } from './config-files.ts'

function loadWithTokenFile(
  tokenFile: string,
  env: Record<string, string> = {},
): { file: string; readToken: () => string } {
  const config: Config = load(SMALLEST.replace('token: secret-of-acme', `tokenFile: ${tokenFile}`), { env })
  const [organization] = config.organizations
  if (!organization) throw new Error('no organization')
  return { file: join(dirname(config.file), 'token'), readToken: organization.readToken }
}

function errorOf(readToken: () => string): Error {
  try {
    readToken()
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('The token was read')
}

describe('a token file', () => {
  it('is read again at each call', () => {
    const { file, readToken } = loadWithTokenFile('./token')

    writeFileSync(file, 'old')
    const before = readToken()
    writeFileSync(file, 'new')
    const after = readToken()

    expect([before, after]).toEqual(['old', 'new'])
  })

  it('that does not exist fails when it is read, not with the configuration', () => {
    const { file, readToken } = loadWithTokenFile('./token')

    const error = errorOf(readToken)

    expect(error).toBeInstanceOf(TokenFileError)
    expect(error.message).toBe(
      `The token file ${file} of organization acme cannot be read: there is no such file. Put the token alone there, or change tokenFile.`,
    )
  })

  it.each([
    ['', 'is empty'],
    ['hidden\nhidden\n', 'holds more than a token'],
    ['hidden\u0000', 'holds more than a token'],
    ...[
      '"hidden"',
      '<hidden>',
      'hidden,',
      'hidden;',
      'ACME_TOKEN=hidden',
      'api_token="hidden"',
      'accessToken=hidden',
      'KEY2=hidden',
    ].map((text) => [text, 'holds more than a token: a quote, NAME= before it']),
    [`$\{HIDDEN}`, 'holds the name of a variable'],
    ['hidden'.repeat(2000), 'holds more than a token, which has at most 8192 characters'],
  ])('that holds %j is refused and not quoted', (content, message) => {
    const { file, readToken } = loadWithTokenFile('./token')
    writeFileSync(file, content)

    const error = errorOf(readToken)

    expect(error).toBeInstanceOf(TokenFileError)
    expect(error.message).toContain(`${file} of organization acme ${message}`)
    expect(error.message).not.toContain('hidden')
  })

  it.each(['aGlkZGVu==', 'AB=', 'eyJ=.a', 'QUJD=.QUJD', '12|abc=def', 'a=b', '=x'])(
    'may hold a = as in %j',
    (token) => {
      const { file, readToken } = loadWithTokenFile('./token')
      writeFileSync(file, token)

      expect(readToken()).toBe(token)
    },
  )

  it.each(['abc', 'abc\n', 'abc\r\n', 'abc\n\n', ' \tabc \r\n', '\ufeffabc'])(
    'may have white space around the token: %j',
    (content) => {
      const { file, readToken } = loadWithTokenFile('./token')
      writeFileSync(file, content)

      expect(readToken()).toBe('abc')
    },
  )

  it('that is a folder is refused', () => {
    expect(errorOf(loadWithTokenFile('..').readToken).message).toContain('cannot be read: it is a folder')
  })

  it('is named by the variable in its path, which may hold the token by mistake', () => {
    const { readToken } = loadWithTokenFile(`\${ACME_TOKEN}`, { ACME_TOKEN: 'hidden' })

    const { message } = errorOf(readToken)

    expect(message).toContain(`The token file named by \${ACME_TOKEN} of organization acme cannot be read`)
    expect(message).not.toContain('hidden')
  })
})

describe('the place of a token', () => {
  it.each<[string, string, 'resolve' | 'leave', RegExp]>([
    ['its variable', `token: \${T}`, 'leave', /^\$\{T\}$/],
    ['its variable, where it was read', `token: \${T}`, 'resolve', /^\$\{T\}$/],
    ['its file', 'tokenFile: secrets/acme', 'leave', /^\/.*\/secrets\/acme$/],
    ['the variable of its file', `tokenFile: "\${DIR}/acme"`, 'leave', /^named by \$\{DIR\}$/],
    ['the configuration', 'token: secret-of-acme', 'leave', /^token of acme in the configuration$/],
  ])('is %s, never the token', (_, written, tokens, expected) => {
    const text = SMALLEST.replace('token: secret-of-acme', written)

    const { organizations } = load(text, { tokens, env: { T: 'secret-of-acme' } })

    expect(organizations[0]?.tokenPlace).toMatch(expected)
  })
})
