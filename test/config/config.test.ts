import { dirname, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { errorOf, load, placesOf, SMALLEST } from './config-files.ts'

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
    ['{ every: 500ms }', /refresh\.every: must be a duration.* at least 1s/],
    ['{ share: 0 }', 'refresh.share: must be a number from 0.1 to 100'],
    ['5m', 'refresh: must be a mapping of every and share, or false'],
  ])('says what is wrong with refresh: %s', (given, problem) => {
    expect(() => load(`${SMALLEST}refresh: ${given}\n`)).toThrow(problem)
  })

  it.each([
    ['"0644"', 0o644],
    ['0o640', 0o640],
  ])('reads publishMode: %s in octal, quoted or not', (given, mode) => {
    expect(load(`${SMALLEST}publishMode: ${given}\n`).publishMode).toBe(mode)
  })

  // 420, 416, 432 and 436 are what YAML and JSON tools make of 0644, 0640, 0660 and 0664: in octal, others may write who may not read.
  it.each(['420', '0', '0244', '0x1a4', 'u=rw,go=r'])('refuses publishMode: %s', (given) => {
    expect(() => load(`${SMALLEST}publishMode: ${given}\n`)).toThrow(
      /:7:14 {2}publishMode: must be a file mode in octal digits .* Write it like "0644"/,
    )
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

describe('the problems of a file', () => {
  it('are all reported at once, of every kind, in the order of the lines', () => {
    const text = `api: { baseUrl: ftp://x, timeout: 30 }
retry: { attempts: 0 }
organizations:
  - id: 7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d
    name: a
    token: \${UNSET}
  - id: 7F3C0F1E-52C7-4A86-9D0B-3C4A5F6B7C8D
    name: A
    tokn: x
collections:
  b_raw: {}
`

    expect(placesOf(text)).toEqual([
      'api.baseUrl 1:17',
      'api.timeout 1:35',
      'retry.attempts 2:20',
      'organizations[0].token 6:12',
      'organizations[1].token 7:5',
      'organizations[1].id 7:9',
      'organizations[1].name 8:11',
      'organizations[1].tokn 9:5',
      'collections.b_raw 11:3',
    ])
  })

  it('are lines of file, place, key, what is wrong and what to do', () => {
    const { message } = errorOf(`${SMALLEST}concurrency: 0\nkeepRuns: 90\n`)

    expect(message.replaceAll(/^.*\//gm, '')).toBe(
      [
        'admin-mirror.yaml:7:14  concurrency: must be a whole number from 1 to 100.',
        'admin-mirror.yaml:8:11  keepRuns: must be a duration, a whole number with its unit. ' +
          'Write it like 500ms, 30s, 5m, 24h or 90d.',
      ].join('\n'),
    )
  })
})
