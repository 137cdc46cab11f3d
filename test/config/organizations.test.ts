import { describe, expect, it } from 'vitest'
import { findOrganization, type OrganizationConfig } from '../../src/config/organizations.ts'

function createOrganization(id: string, name: string): OrganizationConfig {
  const functions = { readToken: () => 'token', tokenPlace: 'token' }
  return { id, name, schedule: '0 * * * *', refresh: false, collections: [], ...functions }
}

describe('findOrganization', () => {
  const first = createOrganization('7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d', 'acme')
  const second = createOrganization('1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed', 'Globex')
  const config = { organizations: [first, second] }

  it.each([
    ['ACME', first],
    ['Globex', second],
    ['1B9D6BCD-bbfd-4b2d-9b5d-ab8dfbbd4bed', second],
    ['7f3c0f1e', undefined],
    ['acm', undefined],
  ])('finds by %j', (nameOrId, expected) => {
    expect(findOrganization(config, nameOrId)).toBe(expected)
  })

  it('takes a name before an id, and the exact name before one in another case', () => {
    const named = createOrganization('00000000-0000-4000-8000-000000000000', first.id)
    const lower = createOrganization('00000000-0000-4000-8000-000000000001', 'globex')

    expect(findOrganization({ organizations: [first, named] }, first.id)).toBe(named)
    expect(findOrganization({ organizations: [second, lower] }, 'globex')).toBe(lower)
  })
})
