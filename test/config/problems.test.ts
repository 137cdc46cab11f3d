import { describe, expect, it } from 'vitest'
import { errorOf, load, SMALLEST } from './config-files.ts'

/** Added text; key, line and column of its one problem; a part of the message. */
type Row = [added: string, place: string, message: string]

function expectOneProblem(text: string, place: string, message: string): void {
  const { problems } = errorOf(text)

  expect(problems.map(({ key, line, column }) => `${key} ${line}:${column}`)).toEqual([place])
  expect(problems[0]?.message).toContain(message)
}

const KEY_OF_101 = Array.from({ length: 101 }, (_, index) => `field${index}`).join(', ')

/** Ids of organizations; the first is the one in SMALLEST. */
const ACME = '7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d'
const OTHER = '1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed'

describe('a key at the top level', () => {
  it.each<Row>([
    ['concurency: 4', 'concurency 7:1', 'Did you mean concurrency?'],
    ['baseUrl: https://x', 'baseUrl 7:1', 'Did you mean api.baseUrl?'],
    ['sharePercent: 5', 'sharePercent 7:1', 'Did you mean rateLimit.sharePercent?'],
    ['zzz: 1', 'zzz 7:1', 'Known here: api, rateLimit,'],
    ['"a b": 1', '["a b"] 7:1', 'is not a known key'],
    ['__proto__: 1', ' 7:1', 'cannot be a key'],
    ['? [a]\n: 1', ' 7:3', 'cannot be a key'],
    ['concurrency: 2\nconcurrency: 3', ' 8:1', 'given twice'],
    ['concurrency: 1.5', 'concurrency 7:14', 'whole number from 1 to 100'],
    ['concurrency:', 'concurrency 7:13', 'has no value. It must be a whole number'],
    ['maxPasses: 11', 'maxPasses 7:12', 'from 1 to 10'],
    ['resumeWithin: 24', 'resumeWithin 7:15', 'a whole number with its unit'],
    ['keepRuns: 99999999d', 'keepRuns 7:11', 'must be a duration'],
    ['keepRuns: [90d]', 'keepRuns 7:11', 'must be a duration'],
    ['schedule: hourly', 'schedule 7:11', 'must be a cron expression. Write 5 or 6 fields in quotes'],
    ['schedule: "0 0 30 2 *"', 'schedule 7:11', 'must be a cron expression'],
    ['timezone: Mars/Olympus', 'timezone 7:11', 'Europe/Paris'],
    ['database: ""', 'database 7:11', 'path of a file'],
    ['database: ../data/', 'database 7:11', 'names a folder'],
    ['database: ~/mirror.db', 'database 7:11', 'only a shell replaces'],
    ['database: ":memory:"', 'database 7:11', 'not :memory:'],
    ['database: ./admin-mirror.yaml', 'database 7:11', 'names this configuration file'],
    ['publish: b.db\ndatabase: postgres://a@b/c', 'publish 7:1', 'copies a mirror in a file'],
    ['publish: ../data/./mirror.db', 'publish 7:10', 'same file as database'],
    ['ping: https://me@hc.example.com/a', 'ping 7:7', 'an http or https address'],
    ['ping: https://:word@hc.example.com/a', 'ping 7:7', 'an http or https address'],
    ['ping: https://hc.example.com/a#b', 'ping 7:7', 'an http or https address'],
    ['rateLimit: 5', 'rateLimit 7:12', 'must be a mapping'],
    ['rateLimit: { requestsPerMinute: 0.0009 }', 'rateLimit.requestsPerMinute 7:33', '0.001 or more'],
    ['rateLimit: { requestsPerMinute: .nan }', 'rateLimit.requestsPerMinute 7:33', '0.001 or more'],
    ['rateLimit: { sharePercent: 101 }', 'rateLimit.sharePercent 7:28', 'from 1 to 100'],
    ['rateLimit: { scope: user }', 'rateLimit.scope 7:21', 'one of token, organization, all'],
    ['rateLimit: { fallbackWait: 25d }', 'rateLimit.fallbackWait 7:28', 'at most 24d'],
    ['retry: { attempts: 0 }', 'retry.attempts 7:20', '1 or more'],
    ['removals: { brakePercent: 101 }', 'removals.brakePercent 7:27', 'from 0 to 100'],
    ['removals: { brakeRows: -1 }', 'removals.brakeRows 7:24', '0 or more'],
    ['http: { port: 65536 }', 'http.port 7:15', 'from 0 to 65535'],
    ['http: { host: "http://x" }', 'http.host 7:15', 'without http://'],
    ['schedule: !env X', ' 7:11', 'a tag (a word after !) is not known'],
    ['schedule: *cron', ' 7:11', 'Put a text in quotes'],
  ])('is refused as %s', (added, place, message) => {
    expectOneProblem(`${SMALLEST}${added}\n`, place, message)
  })

  it.each([
    'rateLimit: { requestsPerMinute: 0.001 }',
    'rateLimit: { requestsPerMinute: null }',
    'retry: { minDelay: 61s, attempts: 1 }',
    'http: { host: "::1", port: 65535 }',
    'concurrency: "100"',
  ])('may be %s', (added) => {
    expect(load(`${SMALLEST}${added}\n`).file).toMatch(/admin-mirror\.yaml$/)
  })
})

describe('a key of api', () => {
  it.each<Row>([
    ['timeout: 25d', 'api.timeout 1:53', 'at most 24d'],
    ['maxResponseBytes: 1023', 'api.maxResponseBytes 1:62', '1024 or more'],
    ['token:abc', 'api["token:..."] 1:44', 'its colon needs a space after it'],
  ])('is refused as %s', (added, place, message) => {
    const text = SMALLEST.replace('api:\n  ', 'api: { ').replace('.com\n', `.com, ${added} }\n`)

    expectOneProblem(text, place, message)
  })

  it.each<Row>([
    ['', 'api.baseUrl 1:1', 'is missing. It must be the http or https address'],
    ['api: {}\n', 'api.baseUrl 1:6', 'is missing. It must be the http or https address'],
    ['api: { baseUrl: }\n', 'api.baseUrl 1:17', 'has no value'],
  ])('is missing in %j', (api, place, message) => {
    expectOneProblem(api + SMALLEST.split('\n').slice(2).join('\n'), place, message)
  })
})

describe('the organizations', () => {
  it.each<Row>([
    ['', 'organizations 1:1', 'is missing. It must be a list'],
    ['organizations: []\n', 'organizations 3:16', 'at least one organization'],
    ['organizations:\n', 'organizations 3:15', 'has no value. It must be a list'],
    ['organizations: [acme]\n', 'organizations[0] 3:17', 'must be a mapping with id, name and token'],
  ])('are refused as %j', (organizations, place, message) => {
    expectOneProblem(SMALLEST.split('\n').slice(0, 2).join('\n') + '\n' + organizations, place, message)
  })

  it.each<[from: string, to: string, place: string, message: string]>([
    ['id: 7f3c0f1e-', 'id: 7f3c0f1e', 'organizations[0].id 4:9', 'must be the UUID'],
    ['name: acme', 'name: " acme"', 'organizations[0].name 5:11', 'no space at either end'],
    ['name: acme', 'name: "a\\nb"', 'organizations[0].name 5:11', 'control characters'],
    ['    name: acme\n', '', 'organizations[0].name 4:5', 'is missing. It must be a short name'],
    ['name: acme', 'nmae: acme\n    name: b', 'organizations[0].nmae 5:5', 'Did you mean name?'],
    ['token: s', 'token: s s', 'organizations[0].token 6:12', 'a space'],
    ['token: s', `token: '"s"' #`, 'organizations[0].token 6:12', 'quotes around it'],
    ['token: s', 'token: ACME_TOKEN=s', 'organizations[0].token 6:12', 'NAME= before it'],
    ['token: s', 'token: "\\u00e9" #', 'organizations[0].token 6:12', 'beyond ASCII'],
    ['token: s', 'token: # s', 'organizations[0].token 6:12', 'has no value'],
    ['    token: secret-of-acme\n', '', 'organizations[0].token 4:5', 'or tokenFile'],
    ['token: s', 'tokenFile: x\n    token: s', 'organizations[0].tokenFile 6:5', 'Keep one of the two'],
  ])('are refused with %j made %j', (from, to, place, message) => {
    expectOneProblem(SMALLEST.replace(from, to), place, message)
  })

  it.each([
    ['x', ''],
    [' ', 'x'],
  ])('are refused with a token that is too long for a header: %j', (character, end) => {
    const text = SMALLEST.replace('token: s', `token: "${character.repeat(9000)}${end}" #`)

    expectOneProblem(text, 'organizations[0].token 6:12', 'a token, which has at most 8192 characters')
    expect(errorOf(text).message).not.toContain(character.repeat(20))
  })

  it('may have the longest token that fits a header', () => {
    const text = SMALLEST.replace('token: s', `token: ${'x'.repeat(8192)} #`)

    expect(load(text).organizations[0]?.readToken()).toHaveLength(8192)
  })

  it.each<[second: string, place: string, message: string]>([
    [`id: ${ACME.toUpperCase()}, name: b`, 'organizations[1].id 7:11', 'same as organizations[0].id'],
    [`id: ${OTHER}, name: ACME`, 'organizations[1].name 7:55', 'same as organizations[0].name'],
    [
      `id: ${OTHER}, name: ${ACME.toUpperCase()}`,
      'organizations[1].name 7:55',
      'is the id of organizations[0]',
    ],
  ])('are refused with a second one of %s', (second, place, message) => {
    expectOneProblem(`${SMALLEST}  - { ${second}, token: x }\n`, place, message)
  })

  it('may have their own id as name', () => {
    expect(load(SMALLEST.replace('name: acme', `name: ${ACME}`)).organizations[0]?.name).toBe(ACME)
  })
})

describe('a collection', () => {
  it.each<Row>([
    ['orders: 5', 'collections.orders 8:11', 'a mapping of settings, or false'],
    ['orders: { path: x }', 'collections.orders.path 8:19', 'begin with one /'],
    ['orders: { key: [] }', 'collections.orders.key 8:18', 'at least one field'],
    ['orders: { key: [id, id] }', 'collections.orders.key 8:18', 'not name a field twice'],
    [`orders: { key: [${KEY_OF_101}] }`, 'collections.orders.key 8:18', 'at most 100 fields'],
    ['orders: { key: [id, a..b] }', 'collections.orders.key[1] 8:23', 'must be a field'],
    ['orders: { ignore: [a, id] }', 'collections.orders.ignore[1] 8:25', 'part of the key'],
    ['orders: { ignore: a }', 'collections.orders.ignore 8:21', 'must be a list of fields'],
    ['orders: { history: 90 }', 'collections.orders.history 8:22', 'true, false, or a duration'],
    ['orders: { total: no }', 'collections.orders.total 8:20', 'one of check, ignore'],
    ['orders: { filters: paid }', 'collections.orders.filters 8:22', 'mapping of query parameters'],
    ['orders: { filters: { a: null } }', 'collections.orders.filters.a 8:27', 'null in quotes'],
    ['orders: { filters: { a: [1, null] } }', 'collections.orders.filters.a[1] 8:31', 'has no value'],
    ['orders: { filters: { filter: { a: 1 } } }', 'collections.orders.filters.filter 8:32', 'filter[state]'],
    ['orders: { filters: { __proto__: x } }', ' 8:24', 'cannot be a key'],
    ['Orders: {}', 'collections.Orders 8:3', 'differs from orders only in upper and lower case'],
    ['my-list: {}', 'collections.my-list 8:3', 'letters, digits and _'],
    ['2024: {}', 'collections.2024 8:3', 'begins with a letter'],
    ['a__b: {}', 'collections.a__b 8:3', 'must not hold __'],
    ['orders_RAW: {}', 'collections.orders_RAW 8:3', 'or end in _, _raw or _history'],
    ['orders_history_by_key: {}', 'collections.orders_history_by_key 8:3', 'of the collection orders'],
    ['items: {}\n  Items_CHANGES: {}', 'collections.Items_CHANGES 9:3', 'of the collection items'],
    ['organizations: {}', 'collections.organizations 8:3', 'tables of the mirror'],
    ['sqlite_x: {}', 'collections.sqlite_x 8:3', 'tables of the mirror'],
    [`${'a'.repeat(61)}: {}`, `collections.${'a'.repeat(61)} 8:3`, 'at most 60'],
  ])('is refused as %s', (added, place, message) => {
    expectOneProblem(`${SMALLEST}collections:\n  ${added}\n`, place, message)
  })

  it.each<Row>([
    ['order: {}', 'organizations[0].collections.order 8:7', 'Did you mean orders?'],
    ['invoices: false', 'organizations[0].collections.invoices 8:7', 'Define it there first'],
    [
      'orders: { key: id }',
      'organizations[0].collections.orders.key 8:17',
      'the same for every organization',
    ],
    ['orders: { zzz: 1 }', 'organizations[0].collections.orders.zzz 8:17', 'Known here: path, filters,'],
    [
      'orders: { filters: { page: 2 } }',
      'organizations[0].collections.orders.filters.page 8:28',
      '--from-page',
    ],
  ])('of an organization is refused as %s', (added, place, message) => {
    expectOneProblem(`${SMALLEST}    collections:\n      ${added}\n`, place, message)
  })
})
