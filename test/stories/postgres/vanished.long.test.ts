import { expect, it } from 'vitest'
import { items, pageOf, serve } from '../../helpers/list-server.ts'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { openDatabase, openReader } from '../../helpers/postgres.ts'
import { CONTAINER, HAS_CONTAINERS, stop } from '../../helpers/processes.ts'
import { startProxy } from '../../helpers/proxy.ts'
import { ACME } from '../../helpers/scene.ts'
import { variable } from '../../helpers/workspace.ts'

const server = await openDatabase()

it.skipIf(server.missing !== null || !HAS_CONTAINERS)(
  'a worker on a machine that vanishes without a word is followed within 30 seconds',
  { timeout: 120_000 },
  async () => {
    const door = Promise.withResolvers<void>()
    const api = await serve(async (asked) => {
      if (asked.page === 4) await door.promise
      return pageOf(items(9), asked)
    })
    const { address, workspace } = onPostgres(server, api.url)
    const { user, database, schema } = address
    // Its connections stay open at the server, and say nothing more.
    const cable = await startProxy(address.port)
    workspace.configure({
      baseUrl: api.url,
      organizations: [ACME],
      schedule: '0 0 1 1 *',
      refresh: false,
      database: `postgres://${user}@127.0.0.1:${variable('DB_PORT')}/${database}?schema=${schema}`,
    })
    const start = (port: number, more: object = {}) => {
      const env = { PGPASSWORD: address.password() ?? '', DB_PORT: String(port) }
      return workspace.start(['start'], { env, ...more })
    }
    // Of processes in another container nobody here knows whether they live.
    const far = start(cable.port, { through: CONTAINER })
    await api.arrival(({ page }) => page === 4)
    const near = start(address.port)
    await near.log(({ event }) => event === 'daemon_started')

    cable.freeze()
    far.killAll('SIGKILL')
    const vanishedAt = performance.now()
    door.resolve()
    await near.log(({ event }) => event === 'run_finished')
    const followed = performance.now() - vanishedAt
    expect((await stop(near)).code).toBe(0)
    const rows = await openReader(address)
    expect(await rows('SELECT count(*)::int FROM orders')).toEqual([{ count: 9 }])
    expect(followed).toBeLessThan(30_000)
  },
)
