import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Status } from '../../src/report/status.ts'
import { createSwitch } from '../helpers/dead-man-switch.ts'
import { items, type Reply } from '../helpers/list-server.ts'
import type { RunningCommand } from '../helpers/processes.ts'
import { createScene, EVERY_SECOND, NEVER, type SceneOptions } from '../helpers/scene.ts'
import type { Workspace } from '../helpers/workspace.ts'
import { parseScrape } from '../listener/exposition.ts'

// Who runs the daemon is called when somebody has to act: by a ping, by metrics, by the page and the exit code of "status --check".

const REVOKED = (): Reply => ({ status: 401, body: {} })

/** A daemon with a listener and a dead-man switch. */
async function createDaemon(start: 'start' | 'startHere', options: SceneOptions = {}) {
  const watch = await createSwitch()
  const settings = { schedule: EVERY_SECOND, refresh: false, http: { port: 0 }, ping: watch.url }
  const scene = await createScene({ list: items(60), perPage: 25, settings, ...options })
  const daemon = scene.workspace[start](['start'])
  const url = String((await daemon.log(({ event }) => event === 'listening')).url)
  return { ...scene, watch, daemon, url }
}

/** What each place tells, once what the listener has read of the mirror is as new as the command's. */
async function told(workspace: Workspace, url: string) {
  const check = await workspace.run(['status', '--check'])
  const get = async (place: string) => (await fetch(`${url}${place}`)).text()
  for (;;) {
    const [scraped = '', text = '', page = ''] = await Promise.all(['metrics', 'status.json', ''].map(get))
    const { samples } = parseScrape(scraped)
    const metric = (wanted: string) =>
      samples.find(({ name }) => name === `admin_mirror_${wanted}`)?.value ?? null
    const json = JSON.parse(text) as Status
    const isNew = metric('check_exit_code') === check.code && json.check_exit_code === check.code
    // It begins its own sentence there.
    if (isNew && page.includes(json.verdict.slice(1))) return { check, metric, page, json }
    await sleep(50)
  }
}

async function stop(daemon: RunningCommand) {
  daemon.kill('SIGTERM')
  return daemon.ended
}

describe.concurrent('somebody is told of', () => {
  it('removals that are held back and a revoked token: by a ping, the metrics, the page and status --check; by the log when a daemon begins that reads nothing', async () => {
    const { api, configure, watch, workspace, daemon, url } = await createDaemon('startHere')
    await watch.arrival('/switch')
    api.list = items(30)
    const removals = await watch.arrival('/fail')
    const heldBack = await told(workspace, url)
    const before = watch.pings.length
    api.instead = REVOKED
    const token = await watch.arrival('/fail', before)
    const held = await told(workspace, url)
    await stop(daemon)

    expect(removals.body).toMatch(/acme orders: removals held back: REMOVALS_HELD \(removals are held back/)
    expect(heldBack.check).toMatchObject({ code: 5, stdout: expect.stringContaining('removals held back') })
    expect([heldBack.metric('removals_held_rows'), heldBack.metric('check_exit_code')]).toEqual([30, 5])
    expect([heldBack.json.check_exit_code, heldBack.json.jobs[0]?.removals_held]).toEqual([5, 30])
    expect(heldBack.page).toContain('removals held back')
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(60)
    expect(token.body).toMatch(/acme orders: token refused since .*: UNAUTHORIZED \(its token is held/)
    expect(held.check).toMatchObject({ code: 3, stdout: expect.stringContaining('held for a refused token') })
    expect([held.metric('token_held'), held.metric('check_exit_code'), held.json.check_exit_code]).toEqual([
      1, 3, 3,
    ])
    expect(held.page).toContain('held for a refused token')

    // As if its walk were complete, which would else be gone on with.
    workspace.change("UPDATE sync_walks SET status = 'abandoned' WHERE status = 'open'")
    configure({ schedule: NEVER })
    const next = workspace.startHere(['start'])
    const again = String((await next.log(({ event }) => event === 'listening')).url)
    const check = await fetch(`${again}check`)
    const text = await check.text()
    await stop(next)

    expect([check.status, text.split('\n')[0]]).toEqual([
      503,
      'the only list needs attention (held for a refused token)',
    ])
  })

  it('a daemon that was killed, until the next one begins: by status, a port where nobody answers, and a start without an end', async () => {
    const { server, api, watch, workspace, daemon, url } = await createDaemon('start', {
      instead: () => new Promise(() => {}),
    })
    await server.arrivals(() => true, 1)
    await watch.arrival('/start')
    daemon.kill('SIGKILL')
    await daemon.ended
    const { stdout } = await workspace.run(['status', '--check'])
    api.instead = () => null
    await workspace.run(['resume'])
    const { stdout: text } = await workspace.run(['status', '--json'])
    const next = workspace.startHere(['start'])
    await next.log(({ event }) => event === 'daemon_started')
    const { stdout: again } = await workspace.run(['status', '--json'])
    const { logs } = await stop(next)

    // Of one that died nobody is warned.
    expect(logs.filter(({ event }) => event === 'daemon_beside')).toEqual([])
    expect(stdout).toMatch(/^daemon: process \d+, running since .* died without being stopped$/m)
    expect(stdout).toContain('the daemon died: start it again, or run sync for newer rows')
    expect(stdout).toMatch(
      /^next: start the daemon again, by its service if it has one: admin-mirror .*start$/m,
    )
    await expect(fetch(`${url}healthz`)).rejects.toThrow()
    expect(watch.pings.map(({ path: at }) => at).slice(0, 2)).not.toContain('/switch')
    expect((JSON.parse(text) as Status).daemon).toMatchObject({
      running: false,
      processes: [{ running: false }],
    })
    expect((JSON.parse(again) as Status).daemon).toMatchObject({
      running: true,
      processes: [{ running: true }],
    })
  })
})
