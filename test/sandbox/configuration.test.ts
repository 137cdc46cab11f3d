import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { sandboxConfiguration } from '../../src/sandbox/server.ts'

const SANDBOX = {
  url: 'http://127.0.0.1:8099',
  organizations: [
    { id: '7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d', name: 'acme', token: '1|sandboxAcme1' },
    { id: '8f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d', name: 'org-9', token: '9|sandboxOrg91' },
  ],
}

describe('sandboxConfiguration', () => {
  it('is YAML with the address, a database and the organizations, and no more', () => {
    expect(parse(sandboxConfiguration(SANDBOX, { database: '/tmp/try.db' }))).toEqual({
      api: { baseUrl: SANDBOX.url },
      database: '/tmp/try.db',
      organizations: SANDBOX.organizations,
    })
  })

  it.each([
    ['C:\\mirrors\\a "b".db', 'C:\\mirrors\\a "b".db'],
    ['#1: été.db', '#1: été.db'],
    // A single dollar would name an environment variable.
    ['$HOME/x.db', '$$HOME/x.db'],
  ])('carries the database name %s', (database, value) => {
    expect(parse(sandboxConfiguration(SANDBOX, { database }))).toMatchObject({ database: value })
  })

  it('says that each token is made up, and how a real one is given', () => {
    const text = sandboxConfiguration(SANDBOX)

    expect(text.match(/made-up token/g)).toHaveLength(2)
    expect(text).toMatch(/token: \$\{ORG_9_TOKEN\}$/m)
  })
})
