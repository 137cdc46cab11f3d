import { describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/server.ts'
import { ESTABLISHMENTS, get, headersOf, idsOf, ORDERS, start, walk } from './client.ts'

async function cause({ url }: Sandbox, accident: string): Promise<[status: number, text: string]> {
  const answer = await fetch(`${url}/sandbox/${accident}`, { method: 'POST' })
  return [answer.status, await answer.text()]
}

async function orders(sandbox: Sandbox): Promise<number[]> {
  return idsOf(await walk(sandbox, ORDERS))
}

describe('an accident that somebody asks for', () => {
  it('revokes the token of one organization, until it is restored', async () => {
    const sandbox = await start()
    const statuses = async () => [
      (await get(sandbox, ORDERS)).status,
      (await get(sandbox, ESTABLISHMENTS)).status,
      (await get(sandbox, ORDERS, headersOf(sandbox, 1))).status,
    ]

    const revoked = [await cause(sandbox, 'acme/revoke'), await statuses()]
    const restored = [await cause(sandbox, 'acme/restore'), await statuses()]

    expect(revoked).toEqual([
      [200, 'acme: its token is refused from now on\n'],
      [401, 401, 200],
    ])
    expect(restored).toEqual([
      [200, 'acme: its token is accepted, and its orders are back\n'],
      [200, 200, 200],
    ])
  })

  it.each(['first', 'last'] as const)('removes the older half of its orders (new ones %s)', async (order) => {
    const sandbox = await start({ order })
    const before = await orders(sandbox)

    const [status] = await cause(sandbox, 'acme/remove')
    const after = await orders(sandbox)
    await cause(sandbox, 'acme/remove')
    const twice = await orders(sandbox)
    await cause(sandbox, 'acme/restore')

    expect(status).toBe(200)
    const newest = (count: number) => (order === 'first' ? before.slice(0, count) : before.slice(-count))
    expect([after, twice]).toEqual([newest(30), newest(15)])
    expect(await orders(sandbox)).toEqual(before)
  })

  it.each(['acme/explode', 'nobody/revoke'])(
    'is refused where there is no such thing: %s',
    async (accident) => {
      const sandbox = await start()
      const { name = '' } = sandbox.organizations[1] ?? {}

      expect(await cause(sandbox, accident)).toEqual([
        404,
        `There are revoke, remove and restore, each of one of these organizations: acme, ${name}\n`,
      ])
      expect((await get(sandbox, ORDERS)).status).toBe(200)
    },
  )
})
