import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/config.ts'
import { LONG } from '../helpers/long.ts'
import { anyCharacter } from '../json/arbitrary.ts'
import { problemsOf, SMALLEST } from './config-files.ts'

/** What is added to a file without problems; place, key and a part of the message of its one problem. */
type Row = [added: string, place: string, message: string]

function expectOneProblem(text: string, place: string, message: string): void {
  expect(problemsOf(text)).toEqual([expect.stringMatching(/^\d+:\d+ {2}/)])
  expect(problemsOf(text)[0]?.startsWith(`${place}: `), problemsOf(text)[0]).toBe(true)
  expect(problemsOf(text)[0]).toContain(message)
}

const KEY_OF_101 = Array.from({ length: 101 }, (_, index) => `field${index}`).join(', ')

/** Ids of organizations; the first is the one in SMALLEST. */
const ACME = '7F3C0F1E-52C7-4A86-9D0B-3C4A5F6B7C8D'
const OTHER = '1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed'

describe('a configuration is refused, at its place and in words, with', () => {
  it.each<Row>([
    ['concurency: 4', '7:1  concurency', 'not a known key; there are: api, rateLimit,'],
    ['"token:secret": 1', '7:1  ["token..."]', 'not a known key'],
    ['concurrency: 1.5', '7:1  concurrency', 'must be a whole number'],
    ['concurrency: 101', '7:1  concurrency', 'to be <=100'],
    ['concurrency: many', '7:1  concurrency', 'must be a whole number'],
    ['resumeWithin: 24', '7:1  resumeWithin', 'must be a duration with its unit, like 500ms'],
    ['resumeWithin: 0s', '7:1  resumeWithin', 'must be a duration'],
    ['keepRuns: 36501d', '7:1  keepRuns', 'must be a duration'],
    // Node ends a longer wait at once.
    ['rateLimit: { fallbackWait: 25d }', '7:14  rateLimit.fallbackWait', 'at most 24d'],
    ['schedule: hourly', '7:1  schedule', 'must be a cron expression of 5 or 6 fields in quotes'],
    ['timezone: Mars/Olympus', '7:1  timezone', 'Europe/Paris'],
    ["timezone: '+05:37'", '7:1  timezone', 'Europe/Paris'],
    ['database: ../data/', '7:1  database', 'path of a file'],
    ['database: ~/mirror.db', '7:1  database', 'path of a file'],
    ['database: postgres://host/db', '7:1  database', 'must be like postgres://user@host'],
    ['database: postgres://a@host/db?user=b', '7:1  database', 'must be like postgres://user@host'],
    ['database: postgres://a@host/db?schema=pg_x', '7:1  database', 'must be like postgres://user@host'],
    [`database: postgres://a@host/db?schema=${'m'.repeat(45)}`, '7:1  database', 'schema (at most 44 '],
    ['publish: b.db\ndatabase: postgres://a@b/c', '7:1  publish', 'copies a mirror in a file'],
    ['database: postgress://a@b/c', '7:1  database', 'must be like postgres://user@host'],
    ['publish: ../data/./mirror.db', '7:1  publish', 'the file of database'],
    ['publish: ../data/mirror.db-journal', '7:1  publish', 'SQLite keeps beside it'],
    // What YAML and JSON tools make of 0644: in octal, others may write who may not read.
    ['publishMode: 420', '7:1  publishMode', 'file mode in octal digits'],
    ['ping: https://me@hc.example.com/a', '7:1  ping', 'an http or https address'],
    ['ping: https://hc.example.com:x/a', '7:1  ping', 'an http or https address'],
    ['refresh: 5m', '7:1  refresh', 'must be a mapping of every and share, or false'],
    ['refresh: { shares: 1 }', '7:12  refresh.shares', 'there are: every, share'],
    ['rateLimit: 5', '7:1  rateLimit', 'must be a mapping'],
    ['collections: 5', '7:1  collections', 'must be a mapping'],
    ['collections: { orders: { ignore: a } }', '7:26  collections.orders.ignore', 'must be a list'],
    ['http: { host: [a] }', '7:9  http.host', 'must be a text'],
    ['rateLimit: { scope: user }', '7:14  rateLimit.scope', '"token"|"organization"|"all"'],
    ['collections: { orders: 5 }', '7:16  collections.orders', 'settings ({} for the defaults), or false'],
    ['collections: { my-list: {} }', '7:16  collections.my-list', 'letters, digits and _'],
    ['collections: { a__b: {} }', '7:16  collections.a__b', 'without __'],
    [`collections: { ${'a'.repeat(41)}: {} }`, `7:16  collections.${'a'.repeat(41)}`, 'at most 40 letters'],
    ['collections: { orders_RAW: {} }', '7:16  collections.orders_RAW', 'one of its tables'],
    ['collections: { sync_x: {} }', '7:16  collections.sync_x', 'none of the mirror itself'],
    ['collections: { Orders: {} }', '7:16  collections.Orders', 'name of another collection'],
    [
      '    collections: { order: {} }',
      '7:20  organizations[0].collections.order',
      'there are: orders, establishments',
    ],
    [
      '    collections: { orders: { key: x } }',
      '7:30  organizations[0].collections.orders.key',
      'not a known key',
    ],
    ['    tokenFile: x', '7:5  organizations[0].tokenFile', 'keep one of the two'],
    [`  - { id: ${ACME}, name: b, token: x }`, '7:7  organizations[1].id', 'that of another organization'],
    [`  - { id: ${OTHER}, name: ACME, token: x }`, '7:49  organizations[1].name', 'of another organization'],
  ])('%s', (added, place, message) => {
    expectOneProblem(`${SMALLEST}${added}\n`, place, message)
  })

  it.each<[setting: string, column: number, key: string, message: string]>([
    ['path: x', 26, 'path', 'a path like /api'],
    ['path: "/a?x"', 26, 'path', 'goes under filters'],
    ['key: []', 26, 'key', 'at most 100 different fields'],
    ['key: [id, id]', 26, 'key', 'at most 100 different fields'],
    [`key: [${KEY_OF_101}]`, 26, 'key', 'at most 100 different fields'],
    ['key: [id, a..b]', 36, 'key[1]', 'must be a field'],
    ['history: 90', 26, 'history', 'true, false, or a duration'],
    ['filters: { a: }', 37, 'filters.a', 'a text or a number'],
    ['filters: { page: 2 }', 37, 'filters.page', '--from-page'],
  ])('orders: { %s }', (setting, column, key, message) => {
    const added = `collections: { orders: { ${setting} } }\n`
    expectOneProblem(SMALLEST + added, `7:${column}  collections.orders.${key}`, message)
  })

  it.each<[from: string | RegExp, to: string, place: string, message: string]>([
    ['https:', 'ftp:', '2:3  api.baseUrl', 'must be an http or https address'],
    ['https://', 'https://user:pass@', '2:3  api.baseUrl', 'user name'],
    ['.com', '.com?a=1', '2:3  api.baseUrl', 'query (?)'],
    [/api:.*\n.*\n/, '', '1:1  api.baseUrl', 'is missing'],
    [/baseUrl.*/, 'baseUrl:', '2:3  api.baseUrl', 'is missing'],
    [/(?<=organizations:)[\s\S]*/, ' []\n', '3:1  organizations', 'at least one organization'],
    [/organizations:[\s\S]*/, '', '1:1  organizations', 'is missing'],
    ['id: 7f3c0f1e-', 'id: 7f3c0f1e', '4:5  organizations[0].id', 'must be the UUID'],
    ['name: acme', 'name: " acme"', '5:5  organizations[0].name', 'short name'],
    ['    token: secret-of-acme\n', '', '4:5  organizations[0].token', 'tokenFile'],
    ['token: s', 'token: my_token=s #', '6:5  organizations[0].token', 'a token alone'],
    ['token: s', 'token: s s', '6:5  organizations[0].token', 'a token alone'],
  ])('%s made %s', (from, to, place, message) => {
    expectOneProblem(SMALLEST.replace(from, to), place, message)
  })

  it.each<[text: string, place: string]>([
    ['api:\n\tbaseUrl: x\n', '2:1'],
    [`${SMALLEST}schedule: !env X\n`, '7:11'],
  ])('the syntax of %j', (text, place) => {
    const message = 'this is not YAML, or its indentation is wrong'
    expect(problemsOf(text)).toContainEqual(expect.stringContaining(`${place}  ${message}`))
  })

  it('the same key twice, an alias of nothing or of itself, aliases that multiply, or a merge of no mapping', () => {
    const levels = Array.from({ length: 12 }, (_, level) =>
      level === 0 ? 'a0: &a0 x' : `a${level}: &a${level} [${`*a${level - 1}, `.repeat(10)}]`,
    )
    expect(problemsOf(`${SMALLEST}concurrency: 2\nconcurrency: 3\n"a:b": 1\n"a:b": 1\n`)).toEqual([
      '8:1  concurrency is given twice: keep one of the two',
      expect.stringContaining('9:1  ["a..."]: is not a known key'),
      '10:1  this key is given twice: keep one of the two',
    ])
    expect(problemsOf('a: 1\nb: *q\nc: *r\n')).toEqual([
      expect.stringContaining('2:4  an alias'),
      expect.stringContaining('3:4  an alias'),
    ])
    const merges = ['http: &web { <<: *web }', 'http: { <<: 9464 }']
    for (const text of ['schedule: *cron', 'schedule: &cron [*cron]', ...merges])
      expect(problemsOf(`${SMALLEST}${text}\n`)).toEqual([expect.stringContaining('an alias (*name)')])
    expect(problemsOf(levels.join('\n'))[0]).toContain('an alias (*name)')
  })

  it('nothing in it, or no file', () => {
    expect(problemsOf('# nothing\n')).toEqual([
      '1:1  api.baseUrl: is missing',
      '1:1  organizations: is missing',
    ])
    expect(() => loadConfig('/nowhere/x.yaml', { env: {}, tokens: 'leave' })).toThrow(
      '/nowhere/x.yaml  the configuration cannot be read (ENOENT: no such file or directory). To make one, copy',
    )
  })
})

const unset = (name: string) => `the environment variable ${name} is not set, or empty`

describe('the problems of a file', () => {
  it('are all reported at once, of every kind, in the order of the lines', () => {
    const text = `api: { baseUrl: ftp://x, timeout: 30 }
retry: { attempts: 0 }
organizations:
  - id: ${OTHER}
    name: a
    token: \${UNSET}
  - id: ${OTHER}
    name: A
    tokn: x
collections:
  orders_raw: {}
`

    expect(problemsOf(text).map((line) => line.split(': ')[0])).toEqual([
      '1:8  api.baseUrl',
      '1:26  api.timeout',
      '2:10  retry.attempts',
      '6:5  organizations[0].token',
      '7:5  organizations[1].id',
      '7:5  organizations[1].token',
      '8:5  organizations[1].name',
      '9:5  organizations[1].tokn',
      '11:3  collections.orders_raw',
    ])
  })

  it('do not quote the file, where the token may be what is wrong', () => {
    const begun = ['token:', 'token: "x" ', 'token: @', 'token: x: ', 'token: !', 'token: *']
    const files = [
      ...begun.map((start) => SMALLEST.replace('token: ', start)),
      ...['"token:secret-of-acme": x', 'token: secret-of-acme é', '{ secret-of-acme: x }: y'].map((line) =>
        SMALLEST.replace('token: secret-of-acme', line),
      ),
    ]
    for (const problems of files.map((text) => problemsOf(text).join())) {
      expect(problems).not.toBe('')
      expect(problems).not.toContain('secret-of-acme')
    }
  })

  it('never show the value of a variable', () => {
    const everywhere = `api: { baseUrl: "\${V}", timeout: "\${V}" }
schedule: "\${V}"
timezone: "\${V}"
concurrency: "\${V}"
database: postgres://\${V}
rateLimit: { scope: "\${V}" }
http: { host: "\${V}", port: "\${V}" }
collections: { orders: { path: "\${V}", key: "\${V}", history: "\${V}", ignore: ["\${V}"], total: "\${V}" } }
organizations:
  - { id: "\${V}", name: "\${V}", token: "\${V}", schedule: "\${V}" }
  - { id: "\${V}", name: "\${V}", tokenFile: "\${V}" }
`
    const shown = problemsOf(everywhere, { env: { V: '\u0001' } }).join('\n')
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, minLength: 6 }), (value) => {
        // Skips values that are part of the messages themselves.
        fc.pre(!shown.includes(value))

        const problems = problemsOf(everywhere, { env: { V: value } }).join('\n')

        expect(problems).not.toBe('')
        expect(problems).not.toContain(value)
      }),
      { numRuns: LONG ? 300 : 30 },
    )
  })

  it('have each variable that is not set once, wherever it is needed', () => {
    const text = SMALLEST.replace('https://admin.example.com', `\${URL}`)
      .replace('acme', `\${toString}`)
      .replace('secret-of-acme', `\${T}`)

    const problems = [`2:3  api.baseUrl: ${unset('URL')}`, `5:5  organizations[0].name: ${unset('toString')}`]
    expect(problemsOf(text, { env: { T: '' } })).toEqual([
      ...problems,
      `6:5  organizations[0].token: ${unset('T')}`,
    ])
    expect(problemsOf(text, { tokens: 'leave' })).toEqual(problems)
    expect(problemsOf(SMALLEST.replace('secret-of-acme', `\${T`))).toEqual([
      expect.stringContaining('6:5  organizations[0].token: has a ${ that no variable follows'),
    ])
  })
})
