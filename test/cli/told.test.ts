import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Status } from '../../src/report/status.ts'
import { parseScrape } from '../listener/exposition.ts'
import { createSwitch } from './dead-man-switch.ts'
import { createDoor, items, pageOf, serve } from './list-server.ts'
import type { Ended, Running } from './processes.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

// Who runs the daemon is called when somebody has to act: by a ping, by metrics, by the exit code of "status --check".

const EVERY_SECOND = '* * * * * *'
const NEVER = '0 0 29 2 *'
const MANY = items(60)

/** A daemon with a listener and a dead-man switch, whose API `answer` can change. */
async function createScene(
  more: { schedule?: string; [setting: string]: unknown } = {},
  list = MANY,
  door: Promise<void> | null = null,
) {
  const control = { isRevoked: false, list }
  const server = await serve(async (asked) => {
    await door
    return control.isRevoked ? { status: 401, body: {} } : pageOf(control.list, asked, { perPage: 25 })
  })
  const watch = await createSwitch()
  const workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [organization('acme', 1)],
    schedule: EVERY_SECOND,
    refresh: false,
    http: { port: 0 },
    ping: watch.url,
    ...more,
  })
  if (more.schedule === NEVER) await workspace.run(['sync'])
  const daemon = workspace.start(['start'])
  const url = String((await daemon.log(({ event }) => event === 'listening')).url)
  return { control, server, watch, workspace, daemon, url }
}

async function told(workspace: Workspace, url: string) {
  const check = await workspace.run(['status', '--check'])
  const { samples } = parseScrape(await (await fetch(`${url}metrics`)).text())
  const metric = (wanted: string) =>
    samples.find(({ name }) => name === `admin_mirror_${wanted}`)?.value ?? null
  const page = await (await fetch(url)).text()
  const json = (await (await fetch(`${url}status.json`)).json()) as Status
  return { check, metric, page, json }
}

async function stop(daemon: Running): Promise<Ended> {
  daemon.kill('SIGTERM')
  return daemon.ended
}

describe.concurrent('somebody is told of', () => {
  it('a revoked token: by a ping, the metrics, the page and status --check', async () => {
    const { control, watch, workspace, daemon, url } = await createScene()
    await watch.arrival('/switch')

    control.isRevoked = true
    const { body } = await watch.arrival('/fail')
    const { check, metric, page, json } = await told(workspace, url)
    await stop(daemon)

    expect(body).toMatch(/acme orders: UNAUTHORIZED \(its token is held/)
    expect(check).toMatchObject({ code: 3, stdout: expect.stringContaining('held for a refused token') })
    expect([metric('token_held'), metric('check_exit_code'), json.check_exit_code]).toEqual([1, 3, 3])
    expect(page).toContain('held for a refused token')
  })

  it('a revoked token that a refresh found, hours before the schedule', async () => {
    const more = {
      schedule: NEVER,
      refresh: { every: '1s', share: 100 },
      rateLimit: { requestsPerMinute: 6000 },
    }
    const { control, watch, workspace, daemon, url } = await createScene(more, items(200))
    await watch.arrival('/switch')

    control.isRevoked = true
    const { body } = await watch.arrival('/fail')
    const { check, metric } = await told(workspace, url)
    await stop(daemon)

    expect(body).toMatch(/acme orders: UNAUTHORIZED \(its token is held/)
    expect([check.code, metric('token_held')]).toEqual([3, 1])
    expect(watch.pings.filter(({ path }) => path.endsWith('/fail'))).toHaveLength(1)
  })

  it('removals that are held back: by a ping, the metrics, the page and status --check', async () => {
    const { control, watch, workspace, daemon, url } = await createScene()
    await watch.arrival('/switch')

    control.list = items(30)
    const { body } = await watch.arrival('/fail')
    const { check, metric, page, json } = await told(workspace, url)
    await stop(daemon)

    expect(body).toMatch(/acme orders: REMOVALS_HELD \(removals are held back/)
    expect(check).toMatchObject({ code: 5, stdout: expect.stringContaining('removals held back') })
    expect([metric('removals_held_rows'), metric('check_exit_code')]).toEqual([30, 5])
    expect([json.check_exit_code, json.jobs[0]?.removals_held]).toEqual([5, 30])
    expect(page).toContain('removals held back')
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(60)
  })

  it('a held token and held removals, when a daemon begins that reads nothing until its schedule', async () => {
    const { control, watch, workspace, daemon } = await createScene()
    await watch.arrival('/switch')
    control.list = items(30)
    await watch.arrival('/fail')
    control.isRevoked = true
    await daemon.log(({ error_code }) => error_code === 'UNAUTHORIZED')
    await stop(daemon)
    // As if its walk were complete, which would else be gone on with.
    workspace.change("UPDATE sync_walks SET status = 'abandoned' WHERE status = 'open'")
    const before = watch.pings.length

    const config = fs.readFileSync(workspace.file('admin-mirror.yaml'), 'utf8')
    fs.writeFileSync(workspace.file('admin-mirror.yaml'), config.replace(EVERY_SECOND, NEVER))
    const next = workspace.start(['start'])
    const { msg } = await next.log(({ event }) => event === 'attention_needed')
    const { body } = await watch.arrival('/fail', before)
    await stop(next)

    expect(msg).toBe('the only list needs attention (held for a refused token, with removals held back)')
    expect(body).toBe(
      'admin-mirror: started\n1 list failed:\nacme orders: UNAUTHORIZED (its token is held: it needs a new one)\n',
    )
  })

  it('a daemon that was killed: by status, a port where nobody answers, and a start without an end', async () => {
    const door = createDoor()
    const { server, watch, workspace, daemon, url } = await createScene({}, MANY, door.opened)
    await server.arrivals(() => true, 1)
    await watch.arrival('/start')
    daemon.killAll('SIGKILL')
    await daemon.ended
    const { stdout } = await workspace.run(['status', '--check'])
    const { stdout: text } = await workspace.run(['status', '--json'])
    door.open()

    expect(stdout).toMatch(/^daemon: process \d+, at work since .* died without being stopped$/m)
    expect(stdout).toContain('the daemon died: nothing is read by itself')
    expect(stdout).toMatch(/^next: begin the daemon again: admin-mirror .*start$/m)
    expect((JSON.parse(text) as Status).daemon.running).toBe(false)
    await expect(fetch(`${url}healthz`)).rejects.toThrow()
    expect(watch.pings.map(({ path }) => path)).toEqual(['/switch/start'])
  })

  it('one that was stopped, too', async () => {
    const { watch, workspace, daemon } = await createScene()
    await watch.arrival('/switch')
    const { code } = await stop(daemon)
    const { stdout } = await workspace.run(['status'])

    expect(code).toBe(0)
    expect(stdout).toMatch(/^daemon: none runs; admin-mirror start begins one$/m)
    expect(stdout).toContain('no daemon runs: nothing is read by itself')
  })
})
