import { describe, expect, it } from 'vitest'
import { organizationToForget } from '../../src/cli/commands/forget.ts'

const [ONE, OTHER] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']
const acme = (id: string, name = 'acme') => ({ id, name })

describe('the organization to forget', () => {
  it.each([
    ['one name in the mirror', [acme(ONE), acme(OTHER)], []],
    ['one in the mirror, the other in the configuration', [acme(ONE)], [acme(OTHER)]],
    ['names that differ in their case alone', [acme(ONE, 'Acme'), acme(OTHER, 'ACME')], []],
  ])('is not chosen among two with %s: deleted data does not come back', (_what, known, configured) => {
    expect(() => organizationToForget('acme', known, configured)).toThrow(
      /several organizations have this name; write the UUID \(.*1, .*2|.*2, .*1\)/,
    )
    expect(organizationToForget(ONE, known, configured).id).toBe(ONE)
  })

  it.each([
    ['that both know, by one name', [acme(ONE)], [acme(ONE)]],
    ['whose name differs in its case from that of another', [acme(ONE), acme(OTHER, 'ACME')], []],
  ])('is the one %s', (_what, known, configured) => {
    expect(organizationToForget('acme', known, configured).id).toBe(ONE)
  })
})
