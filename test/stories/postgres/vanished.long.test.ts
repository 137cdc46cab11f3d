import { afterAll, expect, it } from 'vitest'
import { createDoor, items, pageOf, serve } from '../../helpers/list-server.ts'
import { ACME, onPostgres } from '../../helpers/on-postgres.ts'
import { openReader, startPostgres } from '../../helpers/postgres.ts'
import type { LogLine } from '../../helpers/processes.ts'
import { createSecondMachine } from '../../helpers/second-machine.ts'

// A machine that vanishes without a word: its cable is pulled, and nothing that its end would say arrives.

const machine = createSecondMachine()
const server = machine ? await startPostgres(undefined, machine.host) : null
afterAll(async () => {
  await server?.stop()
  machine?.remove()
})
if (!machine) console.warn('no second machine can be made here: only root can')

const LOCKS =
  "SELECT count(*)::int AS locks FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted"

it.skipIf(!machine || server?.missing !== null)(
  'a machine that vanishes is followed within 20 seconds',
  { timeout: 120_000 },
  async () => {
    if (!machine || !server) return
    const door = createDoor()
    const api = await serve(async (asked) => {
      if (asked.page === 4) await door.opened
      return pageOf(items(9), asked)
    })
    await machine.forward(Number(new URL(api.url).port))
    const { address, workspace } = onPostgres(server, api.url)
    const { user, port, database, schema } = address
    workspace.configure({
      baseUrl: api.url,
      organizations: [ACME],
      schedule: '0 0 1 1 *',
      refresh: false,
      database: `postgres://${user}@${machine.host}:${port}/${database}?schema=${schema}&sslmode=disable`,
    })
    const env = { PGPASSWORD: address.password() ?? '' }
    const far = workspace.start(['start'], { env, through: machine.through })
    await Promise.race([
      api.arrival(({ page }) => page === 4),
      far.ended.then(({ stderr }) => expect(stderr).toBe('')),
    ])
    const near = workspace.start(['start'], { env })
    await near.log(({ event }: LogLine) => event === 'daemon_started')
    const rows = await openReader(address)
    const before = Number((await rows(LOCKS))[0]?.locks)

    machine.pullCable()
    far.killAll('SIGKILL')
    const pulledAt = performance.now()
    door.open()
    // The list's own, and that of its worker.
    await expect.poll(async () => (await rows(LOCKS))[0]?.locks, { interval: 100 }).toBe(before - 2)
    const noticed = performance.now() - pulledAt
    await near.log(({ event }: LogLine) => event === 'run_finished')
    const followed = performance.now() - pulledAt
    near.killAll('SIGTERM')

    expect((await near.ended).code).toBe(0)
    expect(await rows('SELECT count(*)::int FROM orders')).toEqual([{ count: 9 }])
    // A system that ends connections by the second of our settings may take a little longer than they say.
    expect(noticed).toBeLessThan(30_000)
    // Of 20 seconds on a machine that is not busy; it was 31 before.
    expect(followed).toBeLessThan(30_000)
  },
)
