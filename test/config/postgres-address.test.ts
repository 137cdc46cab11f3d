import { describe, expect, it } from 'vitest'
import { parsePostgresAddress } from '../../src/config/postgres-address.ts'

describe('an address of a PostgreSQL server without sslmode', () => {
  it.each([
    ['localhost', false],
    ['LOCALHOST', false],
    ['127.0.0.1', false],
    ['127.8.0.1', false],
    ['[::1]', false],
    ['127.evil.example', true],
    ['127.0.0.1.evil.example', true],
    ['localhost.evil.example', true],
    ['db.example.com', true],
  ])('at %s uses TLS: %s', (host, tls) => {
    expect(parsePostgresAddress(`postgres://mirror@${host}/data?schema=mirror`)).toMatchObject({
      value: { tls },
    })
  })
})
