import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config/problems.ts'
import { readConfigFile } from '../../src/config/yaml.ts'
import { errorOf, load, makeFolder, placesOf, SMALLEST } from './config-files.ts'

/** Text; key, line and column of its one problem; a part of the message. */
type Row = [text: string, place: string, message: string]

function expectOneProblem(text: string, place: string, message: string): void {
  const { problems } = errorOf(text)

  expect(problems.map(({ key, line, column }) => `${key} ${line}:${column}`)).toEqual([place])
  expect(problems[0]?.message).toContain(message)
}

const KEY_OF_101 = Array.from({ length: 101 }, (_, index) => `field${index}`).join(', ')

/** Ids of organizations; the first is the one in SMALLEST. */
const ACME = '7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d'
const OTHER = '1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed'

describe('a configuration is refused, at its place and in words, with', () => {
  it.each<Row>([
    ['concurency: 4', 'concurency 7:1', 'Did you mean concurrency?'],
    ['max_passes: 4', 'max_passes 7:1', 'Did you mean maxPasses?'],
    ['zzz: 1', 'zzz 7:1', 'Known here: api, rateLimit,'],
    ['__proto__: 1', ' 7:1', 'cannot be a key'],
    ['? [a]\n: 1', ' 7:3', 'cannot be a key'],
    ['concurrency: 2\nconcurrency: 3', ' 8:1', 'given twice'],
    ['concurrency: 1.5', 'concurrency 7:14', 'whole number from 1 to 100'],
    ['concurrency:', 'concurrency 7:13', 'has no value. It must be a whole number'],
    ['resumeWithin: 24', 'resumeWithin 7:15', 'a whole number with its unit'],
    ['resumeWithin: 0s', 'resumeWithin 7:15', 'a whole number with its unit'],
    ['keepRuns: 36501d', 'keepRuns 7:11', 'must be a duration'],
    ['keepRuns: [90d]', 'keepRuns 7:11', 'must be a duration'],
    ['schedule: hourly', 'schedule 7:11', 'must be a cron expression. Write 5 or 6 fields in quotes'],
    ['timezone: Mars/Olympus', 'timezone 7:11', 'Europe/Paris'],
    ['database: ../data/', 'database 7:11', 'path of a file'],
    ['database: ~/mirror.db', 'database 7:11', 'path of a file'],
    ['database: ":memory:"', 'database 7:11', 'path of a file'],
    ['database: postgres://host/db', 'database 7:11', 'must name the role'],
    ['publish: b.db\ndatabase: postgres://a@b/c', 'publish 7:1', 'copies a mirror in a file'],
    ['publish: ../data/./mirror.db', 'publish 7:10', 'same file as database'],
    ['publish: ./admin-mirror.yaml', 'publish 7:10', 'same file as database, or this one'],
    // What YAML and JSON tools make of 0644: in octal, others may write who may not read.
    ['publishMode: 420', 'publishMode 7:14', 'file mode in octal digits'],
    ['ping: https://me@hc.example.com/a', 'ping 7:7', 'an http or https address'],
    ['ping: https://hc.example.com/a#b', 'ping 7:7', 'an http or https address'],
    ['refresh: 5m', 'refresh 7:10', 'must be a mapping of every and share, or false'],
    ['refresh: { every: 500ms }', 'refresh.every 7:19', 'at least 1s'],
    ['refresh: { share: 0 }', 'refresh.share 7:19', 'a number from 0.1 to 100'],
    ['rateLimit: 5', 'rateLimit 7:12', 'must be a mapping'],
    ['rateLimit: { requestsPerMinute: .nan }', 'rateLimit.requestsPerMinute 7:33', '0.001 or more'],
    ['rateLimit: { scope: user }', 'rateLimit.scope 7:21', 'one of token, organization, all'],
    ['rateLimit: { fallbackWait: 25d }', 'rateLimit.fallbackWait 7:28', 'at most 24d'],
    ['http: { port: 65536 }', 'http.port 7:15', 'from 0 to 65535'],
    ['http: { host: "http://x" }', 'http.host 7:15', 'without http://'],
    ['collections: { orders: 5 }', 'collections.orders 7:24', 'a mapping of settings, or false'],
    ['collections: { my-list: {} }', 'collections.my-list 7:16', 'letters, digits and _'],
    ['collections: { a__b: {} }', 'collections.a__b 7:16', 'without __'],
    ['collections: { a_RAW: {} }', 'collections.a_RAW 7:16', 'ends in _, _raw'],
    ['collections: { sync_x: {} }', 'collections.sync_x 7:16', 'not sync_'],
    ['collections: { Organizations: {} }', 'collections.Organizations 7:16', 'not organizations'],
    ['collections: { Orders: {} }', 'collections.Orders 7:16', 'name of another collection'],
    ['collections: { orders_changes: {} }', 'collections.orders_changes 7:16', 'or of one of its tables'],
    ['    collections: { order: {} }', 'organizations[0].collections.order 7:20', 'Did you mean orders?'],
    ['    collections: { a: false }', 'organizations[0].collections.a 7:20', 'Define it there first'],
    [
      '    collections: { orders: { key: id } }',
      'organizations[0].collections.orders.key 7:30',
      'Known here: path, filters,',
    ],
  ])('%s', (added, place, message) => {
    expectOneProblem(`${SMALLEST}${added}\n`, place, message)
  })

  it.each<Row>([
    ['path: x', 'path 7:32', 'begin with one /'],
    ['path: "/a?x"', 'path 7:32', 'query or fragment'],
    ['path: /a/%2E%2e/b', 'path 7:32', '. or ..'],
    ['key: []', 'key 7:31', 'at most 100 different fields'],
    ['key: [id, id]', 'key 7:31', 'at most 100 different fields'],
    [`key: [${KEY_OF_101}]`, 'key 7:31', 'at most 100 different fields'],
    ['key: [id, a..b]', 'key[1] 7:36', 'must be a field'],
    ['ignore: a', 'ignore 7:34', 'must be a list of fields'],
    ['history: 90', 'history 7:35', 'true, false, or a duration'],
    ['total: no', 'total 7:33', 'one of check, ignore'],
    ['filters: paid', 'filters 7:35', 'must be a mapping'],
    ['filters: { a: null }', 'filters.a 7:40', 'a text or a number'],
    ['filters: { filter: { a: 1 } }', 'filters.filter 7:45', 'filter[state]'],
    ['filters: { page: 2 }', 'filters.page 7:37', '--from-page'],
  ])('collections: { orders: { %s } }', (setting, place, message) => {
    expectOneProblem(
      `${SMALLEST}collections: { orders: { ${setting} } }\n`,
      `collections.orders.${place}`,
      message,
    )
  })

  it.each<[from: string | RegExp, to: string, place: string, message: string]>([
    ['https:', 'ftp:', 'api.baseUrl 2:12', 'must be the http or https address'],
    ['https://', 'https://user:pass@', 'api.baseUrl 2:12', 'user name or password'],
    ['.com', '.com?a=1', 'api.baseUrl 2:12', 'query or fragment'],
    [/api:.*\n.*\n/, '', 'api.baseUrl 1:1', 'is missing. It must be the http or https address'],
    [/baseUrl.*/, 'baseUrl:', 'api.baseUrl 2:11', 'has no value'],
    [/(?<=organizations:)[\s\S]*/, ' []\n', 'organizations 3:16', 'at least one organization'],
    [/(?<=organizations:)[\s\S]*/, ' [acme]\n', 'organizations[0] 3:17', 'with id, name and token'],
    [/organizations:[\s\S]*/, '', 'organizations 1:1', 'is missing. It must be a list'],
    ['id: 7f3c0f1e-', 'id: 7f3c0f1e', 'organizations[0].id 4:9', 'must be the UUID'],
    ['name: acme', 'name: " acme"', 'organizations[0].name 5:11', 'no space at either end'],
    ['    name: acme\n', '', 'organizations[0].name 4:5', 'is missing. It must be a short name'],
    ['token: s', 'token: s s', 'organizations[0].token 6:12', 'a space'],
    ['token: s', `token: '"s"' #`, 'organizations[0].token 6:12', 'a quote'],
    ['token: s', `token: "${'x'.repeat(8193)}" #`, 'organizations[0].token 6:12', 'at most 8192 characters'],
    ['    token: secret-of-acme\n', '', 'organizations[0].token 4:5', 'or tokenFile'],
    ['token: s', 'tokenFile: x\n    token: s', 'organizations[0].tokenFile 6:5', 'Keep one of the two'],
    [
      /$/,
      `  - { id: ${ACME.toUpperCase()}, name: b, token: x }`,
      'organizations[1].id 7:11',
      'is the same as',
    ],
    [
      /$/,
      `  - { id: ${OTHER}, name: ACME, token: x }`,
      'organizations[1].name 7:55',
      'organizations[0].name',
    ],
  ])('%s made %s', (from, to, place, message) => {
    expectOneProblem(SMALLEST.replace(from, to), place, message)
  })

  it.each<[text: string, line: number, column: number]>([
    ['api:\n\tbaseUrl: x\n', 2, 1],
    ['api:\n  a: 1\n b: 2\n', 3, 1],
    ['a: 1\n---\nb: 2\n', 2, 1],
    ['schedule: */15 * * * *\n', 1, 16],
    [`http: { port: \${PORT} }\n`, 1, 16],
    ['a: b: c\n', 1, 4],
    ['a: "b\n', 2, 1],
    [`${SMALLEST}schedule: *cron\n`, 7, 11],
    [`${SMALLEST}schedule: !env X\n`, 7, 11],
    [`${SMALLEST}collections: &c { orders: *c }\n`, 7, 27],
  ])('the syntax of %j', (text, line, column) => {
    expect(errorOf(text).problems).toContainEqual({
      key: '',
      line,
      column,
      message: expect.stringContaining('this is not YAML, or its indentation is wrong'),
    })
  })

  it('nothing in it, or nothing that is a text', () => {
    const file = join(makeFolder(), 'nothing.yaml')

    for (const text of ['', '\n\n', '# nothing\n', 'null\n'])
      expect(errorOf(text).message).toMatch(/yaml {2}the configuration file is empty\. To fill it, copy/)
    expect(errorOf('- a\n').message).toContain(':1:1  must be a mapping')
    expect(errorOf(Buffer.from('\uFEFFapi: {}', 'utf16le')).message).toContain('not UTF-8 text')
    expect(() => readConfigFile(file)).toThrow(ConfigError)
    expect(() => readConfigFile(file)).toThrow(
      `${file}  there is no such configuration file. To make one, copy`,
    )
  })

  it('aliases that multiply, before they fill the memory', () => {
    const levels = Array.from({ length: 12 }, (_, level) => {
      const parts = level === 0 ? ['x'] : Array.from({ length: 10 }, () => `*a${level - 1}`)
      return `a${level}: &a${level} [${parts.join(', ')}]`
    })

    expect(errorOf(levels.join('\n')).message).toContain('repeat too much')
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

  it('do not quote the file, where the token may be what is wrong', () => {
    for (const [from, to] of [
      ['token: ', 'token:'],
      ['token: ', 'token: "x" '],
      ['token: ', 'token: @'],
      ['token: ', 'token: x: '],
      ['token: ', 'token: !'],
      ['token: ', 'token: *'],
      ['token: secret-of-acme', '"token:secret-of-acme": x'],
      ['token: secret-of-acme', 'token: secret-of-acme é'],
      ['token: secret-of-acme', '{ secret-of-acme: x }: y'],
    ] as const)
      expect(errorOf(SMALLEST.replace(from, to)).message).not.toContain('secret-of-acme')
  })

  it('name the variable that a value came from, and never show its value', () => {
    const everywhere = `api: { baseUrl: "\${V}", timeout: "\${V}" }
schedule: "\${V}"
timezone: "\${V}"
concurrency: "\${V}"
rateLimit: { scope: "\${V}" }
http: { host: "\${V}", port: "\${V}" }
collections: { orders: { path: "\${V}", key: "\${V}", history: "\${V}", ignore: ["\${V}"], total: "\${V}" } }
organizations:
  - { id: "\${V}", name: "\${V}", token: "\${V}", schedule: "\${V}" }
  - { id: "\${V}", name: "\${V}", tokenFile: "\${V}" }
`
    const shown = errorOf(everywhere, { env: { V: '\u0001' } }).message
    expect(shown).toContain('The value comes from the environment (V).')
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 6 }), (value) => {
        // Skips values that are part of the messages themselves.
        fc.pre(!shown.includes(value))

        const error = errorOf(everywhere, { env: { V: value } })

        expect(error.message).not.toContain(value)
        expect(JSON.stringify(error.problems)).not.toContain(JSON.stringify(value).slice(1, -1))
      }),
    )
  })

  it('have each variable that is not set once, wherever it is needed', () => {
    const text = SMALLEST.replace('https://admin.example.com', `\${URL}`)
      .replace('acme', `\${toString}`)
      .replace('secret-of-acme', `\${T}`)

    const places = ['api.baseUrl 2:12', 'organizations[0].name 5:11']
    expect(placesOf(text, { env: { T: '' } })).toEqual([...places, 'organizations[0].token 6:12'])
    expect(placesOf(text, { tokens: 'leave' })).toEqual(places)
    expect(placesOf(SMALLEST.replace('secret-of-acme', `\${T`), { tokens: 'leave' })).toEqual([
      'organizations[0].token 6:12',
    ])
  })
})

it.each([
  'rateLimit: { requestsPerMinute: 0.001 }',
  'retry: { minDelay: 61s, attempts: 1 }',
  'http: { host: "::1", port: 65535 }',
  'collections: { orders: { path: /é..b/ } }',
  'database: postgres://mirror@db.example.com/data',
])('may be %s', (added) => {
  expect(load(`${SMALLEST}${added}\n`).file).toMatch(/admin-mirror\.yaml$/)
})
