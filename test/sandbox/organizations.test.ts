import { describe, expect, it } from 'vitest'
import { createOrganizations } from '../../src/sandbox/data.ts'

describe('createOrganizations', () => {
  it('gives each its own id and token, the same for the same seed', () => {
    const [one, other, elsewhere] = [
      createOrganizations(20, 1),
      createOrganizations(20, 1),
      createOrganizations(20, 2),
    ]

    expect(one).toEqual(other)
    expect(new Set([...one, ...elsewhere].flatMap(({ id, token }) => [id, token])).size).toBe(80)
  })
})
