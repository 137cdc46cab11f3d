import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { interpolate } from '../../src/config/yaml.ts'
import { errorOf, load, placesOf, SMALLEST } from './config-files.ts'

const ENV = { NAME: 'value', _1: 'one', EMPTY: '', TRICKY: `$$ \${NAME} $&` }

describe('interpolate', () => {
  it.each([
    [`\${NAME}`, 'value', ['NAME']],
    [`a-\${NAME}-\${_1}`, 'a-value-one', ['NAME', '_1']],
    [`$\${NAME}`, `\${NAME}`, []],
    [`$$\${NAME}`, '$value', ['NAME']],
    ['5 $ and $NAME', '5 $ and $NAME', []],
    [`\${TRICKY}`, `$$ \${NAME} $&`, ['TRICKY']],
  ])('turns %j into %j', (text, value, names) => {
    expect(interpolate(text, ENV)).toEqual({ text: value, names, problem: null })
  })

  it.each([
    [`\${UNSET}`, 'the environment variable UNSET is not set. Set UNSET'],
    [`a \${EMPTY} b`, 'the environment variable EMPTY is empty'],
    [`\${toString}`, 'the environment variable toString is not set'],
    [`\${NAME`, 'no variable follows'],
    [`\${NAME:-x}`, 'no variable follows'],
  ])('refuses %j', (text, problem) => {
    expect(interpolate(text, ENV)).toMatchObject({ problem: expect.stringContaining(problem) })
  })
})

describe('variables in a file', () => {
  it('stand for numbers and truth values where these are expected, quoted or not', () => {
    const text = `${SMALLEST}concurrency: \${COUNT}
http: { port: "\${PORT}" }
rateLimit: { requestsPerMinute: "\${RATE}" }
removals: { brakePercent: "\${RATE}" }
collections:
  orders: { history: "\${HISTORY}" }
  establishments: \${WANTED}
`

    const env = { COUNT: '7', PORT: '8080', RATE: '12.5', HISTORY: 'false', WANTED: 'false' }
    const loaded = load(text, { env })

    expect(loaded).toMatchObject({
      concurrency: 7,
      http: { port: 8080 },
      rateLimit: { requestsPerMinute: 12.5 },
    })
    expect(loaded.removals.brakePercent).toBe(12.5)
    expect(loaded.collections).toMatchObject([{ name: 'orders', history: false }])
  })

  it.each([
    [`concurrency: \${X}`, 'four', 'concurrency 7:14', 'whole number from 1 to 100'],
    [`schedule: \${X}`, 'hourly!', 'schedule 7:11', 'must be a cron expression.'],
  ])(
    'are refused in %s as %s, by the name of the variable and not by its value',
    (added, value, place, message) => {
      const { problems, message: text } = errorOf(`${SMALLEST}${added}\n`, { env: { X: value } })

      expect(problems.map(({ key, line, column }) => `${key} ${line}:${column}`)).toEqual([place])
      expect(text).toContain(message)
      expect(text).toContain('The value comes from the environment (X).')
      expect(text).not.toContain(value)
    },
  )

  it('are reported once each when they are not set, without further problems of the same value', () => {
    const text = SMALLEST.replace('https://admin.example.com', `\${URL}`).replace('acme', `\${NAME}`)

    expect(placesOf(text)).toEqual(['api.baseUrl 2:12', 'organizations[0].name 5:11'])
  })

  it('are ignored in keys and comments', () => {
    expect(placesOf(`# \${UNSET}\n${SMALLEST}\${UNSET}: 1\n`)).toEqual([`["\${UNSET}"] 8:1`])
  })

  it('leave a token a text, even one of digits', () => {
    for (const token of ['0123', '1e5', 'true', 'null', `\${X}`, '$$']) {
      const { organizations } = load(SMALLEST.replace('secret-of-acme', `\${T}`), { env: { T: token } })

      expect(organizations[0]?.readToken()).toBe(token)
    }
    expect(load(SMALLEST.replace('secret-of-acme', '0123')).organizations[0]?.readToken()).toBe('0123')
  })

  it('stay unresolved in tokens and token files for commands that need no token', () => {
    const second = `  - { id: 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed, name: b, tokenFile: "\${DIR}/b" }\n`
    const text = SMALLEST.replace('secret-of-acme', `\${T}`) + second

    const { organizations } = load(text, { tokens: 'leave' })

    expect(organizations.map(({ name }) => name)).toEqual(['acme', 'b'])
    expect(() => organizations[0]?.readToken()).toThrow('loaded without the token of organization acme')
    expect(() => organizations[1]?.readToken()).toThrow('loaded without the token of organization b')
    expect(placesOf(text)).toEqual(['organizations[0].token 6:12', 'organizations[1].tokenFile 7:69'])
  })

  it('must be well formed in an unresolved token, and set everywhere else', () => {
    const text = SMALLEST.replace('secret-of-acme', `\${T`).replace('acme', `\${NAME}`)

    expect(placesOf(text, { tokens: 'leave' })).toEqual([
      'organizations[0].name 5:11',
      'organizations[0].token 6:12',
    ])
  })

  it('never show their value in an error, wherever they are used', () => {
    const everywhere = `api: { baseUrl: "\${V}", timeout: "\${V}" }
schedule: "\${V}"
timezone: "\${V}"
concurrency: "\${V}"
rateLimit: { scope: "\${V}" }
retry: { minDelay: "\${V}" }
http: { host: "\${V}", port: "\${V}" }
collections: { orders: { path: "\${V}", key: "\${V}", history: "\${V}", ignore: ["\${V}"], total: "\${V}" } }
organizations:
  - { id: "\${V}", name: "\${V}", token: "\${V}", schedule: "\${V}" }
  - { id: "\${V}", name: "\${V}", tokenFile: "\${V}" }
`
    const shown = errorOf(everywhere, { env: { V: '\u0001' } }).message
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
})
