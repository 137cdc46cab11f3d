import { dirname, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type CollectionConfig, findOrganization } from '../../src/config/organizations.ts'
import { load, SMALLEST } from './config-files.ts'

describe('loadConfig', () => {
  it('fills in every default of the interface', () => {
    const { file, database, organizations, fingerprint, ...rest } = load(SMALLEST)

    const standard = {
      key: ['id'],
      filters: {},
      history: true,
      ignore: [],
      total: 'check',
      newest: 'auto',
    }
    const collections = [
      { ...standard, name: 'orders', path: '/api/v1/admin/orders' },
      { ...standard, name: 'establishments', path: '/api/v1/admin/establishments' },
    ]
    expect(rest).toEqual({
      api: {
        baseUrl: 'https://admin.example.com',
        timeout: 30_000,
        maxResponseBytes: 33_554_432,
      },
      rateLimit: {
        requestsPerMinute: null,
        sharePercent: 100,
        scope: 'token',
        fallbackWait: 60_000,
        maxWait: 900_000,
      },
      retry: { attempts: 5, minDelay: 1000, maxDelay: 60_000 },
      postgres: null,
      publish: null,
      ping: expect.any(Function),
      publishEvery: 300_000,
      publishMode: 0o644,
      schedule: '*/15 * * * *',
      timezone: 'UTC',
      concurrency: 4,
      maxPasses: 3,
      resumeWithin: 86_400_000,
      removals: { brakePercent: 20, brakeRows: 10 },
      literalTokens: ['acme'],
      keepRuns: 7_776_000_000,
      http: null,
      collections,
    })
    expect(fingerprint).toMatch(/^[0-9a-f]{16}$/)
    expect(database).toBe(resolve(dirname(file), '../data/mirror.db'))
    expect(organizations).toEqual([
      {
        id: '7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d',
        name: 'acme',
        schedule: '*/15 * * * *',
        refresh: { every: 300_000, share: 10 },
        collections,
        readToken: expect.any(Function),
        tokenPlace: 'token of acme in the configuration',
      },
    ])
  })

  it.each(['rateLimit', 'retry', 'removals', 'collections', 'http', 'publish'])(
    'reads %s without a value as absent',
    (key) => {
      const loaded = load(`${SMALLEST}${key}:\n`)

      const anyFolder = {
        file: expect.any(String),
        database: expect.any(String),
        fingerprint: expect.any(String),
      }
      expect(JSON.parse(JSON.stringify(loaded))).toEqual({
        ...JSON.parse(JSON.stringify(load(SMALLEST))),
        ...anyFolder,
      })
    },
  )

  it.each([
    { forAll: '', own: '', refresh: { every: 300_000, share: 10 } },
    { forAll: 'refresh: true', own: 'refresh: false', refresh: false },
    {
      forAll: 'refresh: false',
      own: 'refresh: { every: 1m }',
      refresh: { every: 60_000, share: 10 },
    },
    {
      forAll: 'refresh: { share: 20 }',
      own: 'refresh: { every: 1m }',
      refresh: { every: 60_000, share: 20 },
    },
  ])('refreshes an organization as it says, else as all: $forAll, $own', ({ forAll, own, refresh }) => {
    const { organizations } = load(`${SMALLEST}${own === '' ? '' : `    ${own}\n`}${forAll}\n`)

    expect(organizations[0]?.refresh).toEqual(refresh)
  })

  it.each([
    ['"0644"', 0o644],
    ['0o640', 0o640],
  ])('reads publishMode: %s in octal, quoted or not', (given, mode) => {
    expect(load(`${SMALLEST}publishMode: ${given}\n`).publishMode).toBe(mode)
  })

  it('resolves relative paths against the folder of the file, and keeps absolute ones', () => {
    const loaded = load(`${SMALLEST}database: ./a.db\npublish: /srv/b.db\n`)

    expect(loaded.database).toBe(resolve(dirname(loaded.file), 'a.db'))
    expect(loaded.publish).toBe('/srv/b.db')
  })

  it('makes ids lower case, and keeps the order of the organizations', () => {
    const second =
      '  - { id: 1B9D6BCD-BBFD-4B2D-9B5D-AB8DFBBD4BED, name: "007", token: x, schedule: 0 * * * * }\n'

    const { organizations } = load(SMALLEST + second)

    expect(organizations.map(({ id, name, schedule }) => [id, name, schedule])).toEqual([
      ['7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d', 'acme', '*/15 * * * *'],
      ['1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed', '007', '0 * * * *'],
    ])
  })

  it('follows aliases and merge keys', () => {
    const text = `api: { baseUrl: https://a.example.com, timeout: &short 5s }
organizations:
  - &first { id: 7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d, name: a, token: one, schedule: 1 * * * * }
  - <<: *first
    id: 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed
    name: b
retry: { minDelay: *short }
`

    const { organizations, retry } = load(text)

    expect(retry.minDelay).toBe(5000)
    expect(organizations[1]).toMatchObject({ name: 'b', schedule: '1 * * * *' })
    expect(organizations[1]?.readToken()).toBe('one')
  })

  it('keeps tokens out of what a log line would print', () => {
    const loaded = load(SMALLEST)

    expect(JSON.stringify(loaded)).not.toContain('secret-of-acme')
    expect(loaded.organizations[0]?.readToken()).toBe('secret-of-acme')
  })
})

const fingerprintOf = (content: string, T = 'a') => load(content, { env: { T } }).fingerprint

describe('the fingerprint', () => {
  it('is another one when a value is, and the same whatever the comments and the environment are', () => {
    const text = SMALLEST.replace('secret-of-acme', `\${T}`)

    expect(fingerprintOf(`# a comment\n${text}`, 'b')).toBe(fingerprintOf(text))
    expect(fingerprintOf(`${text}concurrency: 3\n`)).not.toBe(fingerprintOf(text))
    expect(load(text, { tokens: 'leave' }).fingerprint).toBe(fingerprintOf(text))
  })
})

describe('variables in a file', () => {
  it.each([
    [`a-\${NAME}-\${_1}`, 'a-value-one'],
    [`$\${NAME}`, `\${NAME}`],
    [`$$\${NAME}`, '$value'],
    ['5 $ and $NAME', '5 $ and $NAME'],
    [`\${TRICKY}`, `$$ \${NAME} $&`],
  ])('turn %j into %j', (typed, value) => {
    const env = { NAME: 'value', _1: 'one', TRICKY: `$$ \${NAME} $&` }

    expect(
      load(
        SMALLEST.replace('name: acme', () => `name: "${typed}"`),
        { env },
      ).organizations[0]?.name,
    ).toBe(value)
  })

  it('stand for numbers and truth values too, and stay unresolved in tokens for commands that need none', () => {
    const text = `${SMALLEST.replace('secret-of-acme', `\${T}`)}concurrency: \${COUNT}
http: { port: "\${COUNT}" }
collections: { orders: { history: "\${HISTORY}" }, establishments: "\${HISTORY}" }
`

    const loaded = load(text, { env: { COUNT: '7', HISTORY: 'false' }, tokens: 'leave' })

    expect(loaded).toMatchObject({ concurrency: 7, http: { port: 7 } })
    expect(loaded.collections).toMatchObject([{ name: 'orders', history: false }])
    expect(() => loaded.organizations[0]?.readToken()).toThrow(
      'loaded without the token of organization acme',
    )
  })

  it('leave a token a text, even one of digits', () => {
    for (const token of ['0123', '1e5', 'true', `\${X}`, '$$']) {
      const { organizations } = load(SMALLEST.replace('secret-of-acme', `\${T}`), { env: { T: token } })

      expect(organizations[0]?.readToken()).toBe(token)
    }
    expect(load(SMALLEST.replace('secret-of-acme', '0123')).organizations[0]?.readToken()).toBe('0123')
  })
})

function loadCollections(top: string, own = ''): { top: CollectionConfig[]; own: CollectionConfig[] } {
  const override = own === '' ? '' : `    collections:\n      ${own}\n`
  const { collections, organizations } = load(`${SMALLEST}${override}collections:\n  ${top}\n`)
  return { top: collections, own: organizations[0]?.collections ?? [] }
}

describe('the collections', () => {
  it.each<[top: string, own: string, expectedTop: string[], expectedOwn: string[]]>([
    ['invoices: {}', '', ['orders', 'establishments', 'invoices'], ['orders', 'establishments', 'invoices']],
    ['orders: false', '', ['establishments'], ['establishments']],
    ['orders: false', 'orders: true', ['orders', 'establishments'], ['orders', 'establishments']],
    ['orders: true', 'orders: false', ['orders', 'establishments'], ['establishments']],
  ])('with %j and for the organization %j are %j, synced %j', (top, own, expectedTop, expectedOwn) => {
    const collections = loadCollections(top, own)

    expect(collections.top.map(({ name }) => name)).toEqual(expectedTop)
    expect(collections.own.map(({ name }) => name)).toEqual(expectedOwn)
  })

  it.each([
    ['12345678901234567890', '12345678901234567890'],
    ['true', 'true'],
    ['"a $$ b"', 'a $ b'],
    ['[01, b, 1e3]', ['01', 'b', '1e3']],
  ])('send the filter value %s as it was typed', (typed, sent) => {
    const { top } = loadCollections(`orders: { filters: { "state[]": ${typed} } }`)

    expect(top[0]?.filters).toEqual({ 'state[]': sent })
  })

  it("have an organization's settings instead of their own, and its filters instead of all theirs", () => {
    const orders = 'orders: { key: order_id, filters: { a: 1, b: 2 }, history: 5d, ignore: [x, m.y] }'
    const override = 'orders: { filters: { state: paid }, path: /other, ignore: [], total: ignore }'

    const { top, own } = loadCollections(`${orders}\n  Lines: {}`, override)

    expect(top[2]?.path).toBe('/api/v1/admin/Lines')
    expect(top[0]).toMatchObject({ filters: { a: '1', b: '2' }, ignore: ['x', 'm.y'] })
    expect(own[0]).toEqual({
      name: 'orders',
      path: '/other',
      key: ['order_id'],
      filters: { state: 'paid' },
      history: 432_000_000,
      ignore: [],
      total: 'ignore',
      newest: 'auto',
    })
  })
})

describe('the address of the API', () => {
  it.each([
    ['https://admin.example.com/', 'https://admin.example.com'],
    ['HTTPS://Admin.Example.com:443/', 'https://admin.example.com'],
    ['http://127.0.0.1:8080/a/b//', 'http://127.0.0.1:8080/a/b'],
  ])('turns %j into %j', (text, value) => {
    expect(load(SMALLEST.replace('https://admin.example.com', text)).api.baseUrl).toBe(value)
  })
})

describe('findOrganization', () => {
  const other = `  - { id: 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed, name: 7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d, token: x }\n`
  it.each([
    ['ACME', 0],
    ['1B9D6BCD-bbfd-4b2d-9b5d-ab8dfbbd4bed', 1],
    ['7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d', 1],
    ['acm', undefined],
  ])('finds %j by name, else by id', (nameOrId, index) => {
    const config = load(SMALLEST + other)

    const found = findOrganization(config, nameOrId)

    expect(found).toBe(index === undefined ? undefined : config.organizations[index])
  })
})
