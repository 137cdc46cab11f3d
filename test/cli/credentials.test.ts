import { expect, it } from 'vitest'
import { createCredentialsReader } from '../../src/cli/credentials.ts'
import type { OrganizationConfig } from '../../src/config/organizations.ts'
import { ACME, GLOBEX } from '../helpers/jobs.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'

it('a refused token is looked for once in the files of all organizations, however many lists meet its hold', async () => {
  const { tokens, clock } = openTestMirror()
  let readings = 0
  const organizations = [ACME, GLOBEX].map(
    ({ id, name }): OrganizationConfig => ({
      id,
      name,
      schedule: '0 * * * *',
      refresh: false,
      collections: [],
      tokenPlace: 'token',
      readToken: () => {
        readings++
        return 'the token of both'
      },
    }),
  )
  const rateLimit = {
    requestsPerMinute: null,
    sharePercent: 100,
    scope: 'token',
    fallbackWait: 1,
    maxWait: 1,
  } as const
  const read = createCredentialsReader({
    config: { organizations, rateLimit },
    tokens,
    now: clock.now,
  })
  const [first] = organizations
  if (!first) throw new Error('there is no organization')
  const { hold } = await read(first)
  await hold.refused('the token was refused (401)')
  const message = 'run "admin-mirror resume" if it is valid again'
  expect(hold.check).toThrow(message)
  const before = readings

  for (let list = 0; list < 100; list++) expect(hold.check).toThrow(message)

  expect(readings).toBe(before)
})
