import { describe, expect, it } from 'vitest'
import { createSwitch } from '../../helpers/dead-man-switch.ts'
import { items, pageOf, serve } from '../../helpers/list-server.ts'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { ACME, GLOBEX } from '../../helpers/scene.ts'

const server = await openDatabase()

describe.skipIf(server.missing !== null)('a ping of a PostgreSQL mirror', () => {
  it('names a list that failed in another process, as long as status does', async () => {
    const api = await serve((asked) =>
      asked.organization === GLOBEX.id ? { status: 403, body: {} } : pageOf(items(3), asked),
    )
    const watch = await createSwitch()
    const { run } = onPostgres(server, api.url, { organizations: [ACME, GLOBEX], ping: watch.url })
    await run(['sync', '--org', 'globex'])
    const { code } = await run(['sync', '--org', 'acme'])

    expect(code).toBe(0)
    expect(watch.pings.at(-1)?.path).toMatch(/\/fail$/)
    expect(watch.pings.at(-1)?.body).toMatch(/\n1 list failed:\nglobex orders: FORBIDDEN/)
  })
})
