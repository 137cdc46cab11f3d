import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { parsePostgresAddress } from '../../src/config/postgres-address.ts'
import { TokenFileError } from '../../src/config/token-file.ts'
import { tempFolder } from '../helpers/temp-folder.ts'
import { load, SMALLEST } from './config-files.ts'

const fingerprintOf = (text: string, T: string) => load(text, { env: { T } }).fingerprint

describe('a configuration', () => {
  it('keeps secrets out of what a log line would print', () => {
    const config = load(`${SMALLEST}ping: https://hc.example.com/abc\n`)

    expect(config.organizations[0]?.readToken()).toBe('secret-of-acme')
    expect(config.ping()).toBe('https://hc.example.com/abc')
    expect(JSON.stringify(config)).not.toMatch(/secret-of-acme|hc\.example/)
  })

  it.each<[added: string, at: string, value: unknown]>([
    ['rateLimit:\nretry:\nhttp:\ncollections:\npublish:', 'publish', null],
    ['publishMode: 0640', 'publishMode', 0o640],
    ['database: ./a.db', 'database', '/etc/mirror/a.db'],
    ['database: postgres://u:p%40@db/x', 'database', 'postgres://u@db:5432/x?schema=admin_mirror'],
    ['    refresh: false', 'organizations.0.refresh', false],
    ['    refresh: { every: 1m }\nrefresh: false', 'organizations.0.refresh', { every: 60_000, share: 10 }],
    [
      '    refresh: { every: 1m }\nrefresh: { share: 2 }',
      'organizations.0.refresh',
      { every: 60_000, share: 2 },
    ],
    ['    collections: { orders: false }', 'organizations.0.collections.0.name', 'establishments'],
    ['collections: { orders: false }', 'organizations.0.collections.0.name', 'establishments'],
    ['collections: { price_changes: }', 'collections.2.path', '/api/v1/admin/price_changes'],
    ['    collections: { orders: }\ncollections: { orders: false }', 'collections.0.name', 'orders'],
    ['collections: { orders: { key: [a.b, c] } }', 'collections.0.key', ['a.b', 'c']],
    // Values are sent and named as they were typed.
    [
      'collections: { orders: { filters: { "a[]": [01, 1e3] } } }',
      'collections.0.filters',
      { 'a[]': ['01', '1e3'] },
    ],
  ])('with %s has at %s: %j', (added, at, value) => {
    const config: unknown = load(`${SMALLEST}${added}\n`)
    const found = at.split('.').reduce((inside, name) => (inside as Record<string, unknown>)[name], config)

    expect(found).toEqual(value)
  })

  it("has an organization's settings of a collection instead of those for all, and its filters instead of all theirs", () => {
    const all =
      'collections: { orders: { key: order_id, filters: { a: 1, b: 2 }, history: false, ignore: [x] } }'
    const own =
      '    collections: { orders: { filters: { state: paid }, path: /other, ignore: [], total: ignore } }'

    const { collections, organizations } = load(`${SMALLEST}${own}\n${all}\n`)

    expect(collections[0]).toMatchObject({ filters: { a: '1', b: '2' }, ignore: ['x'], total: 'check' })
    const kept = { key: ['order_id'], history: false, newest: 'auto' }
    const theirs = { path: '/other', filters: { state: 'paid' }, ignore: [], total: 'ignore' }
    expect(organizations[0]?.collections[0]).toEqual({ name: 'orders', ...kept, ...theirs })
  })

  it('may share settings by aliases and merge keys, and two organizations a token', () => {
    const { organizations } = load(`api: { baseUrl: https://a.example.com }
organizations:
  - &first { id: 7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d, name: a, token: one, schedule: 1 * * * * }
  - { <<: *first, id: 1B9D6BCD-bbfd-4b2d-9b5d-ab8dfbbd4bed, name: b }
`)

    expect(organizations[1]).toMatchObject({
      id: '1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed',
      schedule: '1 * * * *',
    })
    expect(organizations[1]?.readToken()).toBe('one')
  })

  it('has a fingerprint that comments and the environment do not change', () => {
    const text = SMALLEST.replace('secret-of-acme', `\${T}`)

    expect(fingerprintOf(`# a comment\n${text}`, 'b')).toBe(fingerprintOf(text, 'a'))
    expect(load(text, { tokens: 'leave' }).fingerprint).toBe(fingerprintOf(text, 'a'))
    expect(fingerprintOf(`${text}concurrency: 3\n`, 'a')).not.toBe(fingerprintOf(text, 'a'))
  })

  it.each([
    ['HTTPS://Admin.Example.com:443/', 'https://admin.example.com'],
    ['http://127.0.0.1:8080/a/b//', 'http://127.0.0.1:8080/a/b'],
  ])('with the address %s asks %s', (typed, asked) => {
    expect(load(SMALLEST.replace('https://admin.example.com', typed)).api.baseUrl).toBe(asked)
  })
})

describe('variables', () => {
  it.each([
    [`a-\${NAME}-\${_1}`, 'a-value-one'],
    [`$\${NAME}`, `\${NAME}`],
    [`$$\${NAME}`, '$value'],
    ['5 $ and $NAME', '5 $ and $NAME'],
    [`\${TRICKY}`, `$$ \${NAME} $&`],
  ])('turn %j into %j', (typed, value) => {
    const env = { NAME: 'value', _1: 'one', TRICKY: `$$ \${NAME} $&` }
    const text = SMALLEST.replace('name: acme', () => `name: "${typed}"`)

    expect(load(text, { env }).organizations[0]?.name).toBe(value)
  })

  it('stand for numbers and truth values, and leave a token a text', () => {
    const added = `concurrency: \${N}\ncollections: { orders: { history: "\${OFF}" }, establishments: "\${OFF}" }\n`
    const text = `${SMALLEST.replace('secret-of-acme', `\${N}`)}${added}`

    const { concurrency, collections, organizations } = load(text, { env: { N: '07', OFF: 'false' } })

    expect(concurrency).toBe(7)
    expect(collections).toMatchObject([{ name: 'orders', history: false }])
    expect(organizations[0]?.readToken()).toBe('07')
  })

  it('of tokens and pings are not needed by commands that send nothing', () => {
    const text = `${SMALLEST.replace('secret-of-acme', `\${T}`)}ping: "\${P}"\n`

    const { organizations } = load(text, { tokens: 'leave' })

    expect(organizations[0]?.tokenPlace).toBe(`\${T}`)
    expect(() => organizations[0]?.readToken()).toThrow('loaded without the token of acme')
  })
})

/** An organization whose token is in this file of a new folder. */
function withTokenFile(tokenFile: string, env: Record<string, string> = {}) {
  const folder = tempFolder()
  const text = SMALLEST.replace('token: secret-of-acme', `tokenFile: ${tokenFile}`)
  const [organization] = load(text.replace('DIR', folder), { env: { ...env, DIR: folder } }).organizations
  if (!organization) throw new Error('no organization')
  const write = (content: string) => fs.writeFileSync(path.join(folder, 'token'), content)
  return { ...organization, write, file: path.join(folder, 'token') }
}

describe('a token file', () => {
  it('is read again at each call, without the white space around the token', () => {
    const { readToken, write, tokenPlace, file } = withTokenFile('DIR/token')
    const read = ['abc', 'new\n', '\ufeffabc\r\n\n', ' \teyJ=.a== '].map((content) => {
      write(content)
      return readToken()
    })

    expect(read).toEqual(['abc', 'new', 'abc', 'eyJ=.a=='])
    expect(tokenPlace).toBe(file)
  })

  it.each([
    ['', 'is empty'],
    ['hidden\nhidden\n', 'holds more than a token'],
    ['"hidden"', 'holds more than a token'],
    ['ACME_TOKEN=hidden', 'holds more than a token'],
    [`$\{HIDDEN}`, 'holds more than a token'],
    ['hidden'.repeat(1400), 'holds more than a token'],
    [null, 'cannot be read: ENOENT: no such file or directory'],
  ])('(%#) is named and not quoted', (content, message) => {
    const { readToken, write, file } = withTokenFile('DIR/token')
    if (content !== null) write(content)

    expect(readToken).toThrow(TokenFileError)
    expect(readToken).toThrow(`The token file ${file} of organization acme ${message}`)
    expect(readToken).not.toThrow(/hidden/i)
  })

  it('is named by the variable in its path, which may hold the token by mistake', () => {
    const { readToken } = withTokenFile(`\${ACME_TOKEN}`, { ACME_TOKEN: 'hidden' })

    expect(readToken).toThrow(`The token file named by \${ACME_TOKEN} of organization acme cannot be read`)
    expect(readToken).not.toThrow('hidden')
  })
})

it.each([
  ['127.8.0.1', false],
  ['127.evil.example', true],
  ['[::1]', false],
  ['localhost.evil.example', true],
  ['db.example.com', true],
])('a PostgreSQL server at %s is asked by TLS: %s', (host, tls) => {
  const address = parsePostgresAddress(`postgres://mirror:a/b#c@d@${host}/data?schema=mirror`)

  expect(address).toMatchObject({
    value: { tls, user: 'mirror', database: 'data', schema: 'mirror', port: 5432 },
  })
  expect('value' in address && address.value.password()).toBe('a/b#c@d')
})
