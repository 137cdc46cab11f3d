import { describe, expect, it } from 'vitest'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { openReader } from '../../helpers/postgres.ts'
import { startProxy } from '../../helpers/proxy.ts'
import { canReplicate, startReplicated } from '../../helpers/replicated-postgres.ts'
import { organization } from '../../helpers/workspace.ts'
import { startCrashApi } from './crash-api.ts'

// The machine of the server is lost, and its standby takes over, behind one address.

const tokens = ['1|Secret-of-token-1-x7Qp93LmZt5VbRw', '2|Secret-of-token-2-x7Qp93LmZt5VbRw']
const organizations = Array.from({ length: 6 }, (_, index) =>
  organization(`org${index}`, index + 1, { token: tokens[index % 2] }),
)

async function createScene() {
  const server = await startReplicated()
  const proxy = await startProxy(server.primary)
  const api = await startCrashApi([], 0)
  const url = new URL(server.url)
  url.port = String(proxy.port)
  const settings = { organizations, schedule: '* * * * * *', removals: { brakePercent: 0 } }
  const mirror = onPostgres({ url: url.href }, api.url, settings)
  const workers = [mirror.start(['start']), mirror.start(['start'])]
  const failOver = () => {
    server.failOver()
    proxy.target(server.standby)
    proxy.cut()
  }
  const at = (port: number) => openReader({ ...mirror.address, port })
  return { server, api, mirror, workers, failOver, at }
}

type Scene = Awaited<ReturnType<typeof createScene>>

/** Lists that are other in the mirror than the API shows them, after as many syncs as a list at rest needs. */
async function differences({ api, mirror }: Scene): Promise<string[]> {
  api.rest()
  for (const token of tokens) api.revoke(token, false)
  expect(await mirror.run(['resume'])).toMatchObject({ code: 0 })
  for (let turn = 0; turn < 3; turn++) {
    const { code, stderr } = await mirror.run(['sync', '--wait', '--accept-removals'])
    expect(code, stderr).toBe(0)
  }
  const rows = await openReader(mirror.address)
  const different: string[] = []
  for (const { id, name } of organizations) {
    const items = await rows('SELECT _json FROM orders_raw WHERE _organization_id = $1 ORDER BY id', id)
    const truth = api.listOf(id, 'orders').map((item) => JSON.stringify(item))
    if (items.map(({ _json: json }) => String(json)).join() !== truth.join()) different.push(name)
  }
  return different
}

async function stop({ workers }: Scene): Promise<void> {
  for (const worker of workers) worker.killAll('SIGTERM')
  const ends = await Promise.all(workers.map(({ ended }) => ended))
  expect(ends.map(({ code }) => code)).toEqual([0, 0])
  const unknown = ends
    .flatMap(({ logs }) => logs)
    .filter((line) => line.error_code === 'INTERNAL' || line.event === 'run_crashed')
  expect(unknown.slice(0, 3)).toEqual([])
}

const HELD = 'SELECT count(*)::int AS held FROM organizations WHERE held_since IS NOT NULL'
/** For a hang. */
const SOON = { timeout: 60_000 }

describe.skipIf(!canReplicate)('a standby takes over', { timeout: 180_000 }, () => {
  it('and nothing is lost where commits wait for it: the workers go on, and no hold is forgotten', async () => {
    const scene = await createScene()
    const { server, api, workers, failOver, at } = scene
    await server.waitForStandby()
    await workers[0]?.log(({ event }) => event === 'run_finished')
    api.revoke(tokens[0] ?? '', true)
    const primary = await at(server.primary)
    await expect.poll(() => primary(HELD), SOON).toEqual([{ held: 3 }])

    failOver()
    const before = api.requests()
    const refused = api.timesOf(tokens[0] ?? '').length
    // The other lists are read again and again.
    await expect.poll(() => api.requests(), SOON).toBeGreaterThan(before + 30)

    expect(api.timesOf(tokens[0] ?? '')).toHaveLength(refused)
    await stop(scene)
    expect(await differences(scene)).toEqual([])
  })

  it('and what it had not got is read again, where commits do not wait for it', async () => {
    const scene = await createScene()
    const { server, api, workers, failOver, at } = scene
    await workers[0]?.log(({ event }) => event === 'run_finished')
    await server.cutReplication()
    const receivers = 'SELECT count(*)::int AS receivers FROM pg_stat_wal_receiver'
    const behind = await at(server.standby)
    await expect.poll(() => behind(receivers), SOON).toEqual([{ receivers: 0 }])
    api.revoke(tokens[0] ?? '', true)
    const primary = await at(server.primary)
    await expect.poll(() => primary(HELD), SOON).toEqual([{ held: 3 }])

    failOver()
    const standby = await at(server.standby)
    const before = api.requests()
    const refused = api.timesOf(tokens[0] ?? '').length
    const lost = await standby(HELD)
    await expect.poll(() => standby(HELD), SOON).toEqual([{ held: 3 }])

    expect(lost).toEqual([{ held: 0 }])
    expect(api.requests()).toBeGreaterThan(before)
    // The lost hold is written again by the first answer.
    expect(api.timesOf(tokens[0] ?? '').length - refused).toBeLessThanOrEqual(2)
    await stop(scene)
    expect(await differences(scene)).toEqual([])
  })
})
