import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Status } from '../../src/report/status.ts'
import { createSwitch } from '../helpers/dead-man-switch.ts'
import { items } from '../helpers/list-server.ts'
import { createScene, EVERY_SECOND, type SceneOptions } from '../helpers/scene.ts'
import type { Workspace } from '../helpers/workspace.ts'
import { parseScrape } from '../listener/exposition.ts'

// Who runs the daemon is called when somebody has to act: by a ping, by metrics, by the page and the exit code of "status --check".

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
  const { code, stdout } = await workspace.run(['status', '--check'])
  const get = async (place: string) => (await fetch(`${url}${place}`)).text()
  for (;;) {
    const [scraped = '', text = '', page = '', check = ''] = await Promise.all(
      ['metrics', 'status.json', '', 'check'].map(get),
    )
    const { samples } = parseScrape(scraped)
    const metric = (wanted: string) => samples.find(({ name }) => name === `admin_mirror_${wanted}`)?.value
    const json = JSON.parse(text) as Status
    const isNew = metric('check_exit_code') === code && json.check_exit_code === code
    // It begins its own sentence there.
    if (isNew && [page, check].every((one) => one.includes(json.verdict.slice(1))))
      return { code, stdout, metric, job: json.jobs[0] }
    await sleep(50)
  }
}

describe.concurrent('somebody is told of', () => {
  it('removals that are held back and a revoked token: by a ping, the metrics, the page and status --check', async () => {
    const { api, watch, workspace, daemon, url } = await createDaemon('startHere')
    await watch.arrival('/switch')
    api.list = items(30)
    const removals = await watch.arrival('/fail')
    const heldBack = await told(workspace, url)
    const before = watch.pings.length
    api.instead = () => ({ status: 401, body: {} })
    const token = await watch.arrival('/fail', before)
    const held = await told(workspace, url)
    daemon.kill('SIGTERM')
    await daemon.ended

    expect(removals.body).toMatch(/acme orders: removals held back: REMOVALS_HELD \(removals are held back/)
    expect(heldBack).toMatchObject({ code: 5, stdout: expect.stringContaining('removals held back') })
    expect([heldBack.metric('removals_held_rows'), heldBack.job?.removals_held]).toEqual([30, 30])
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(60)
    expect(token.body).toMatch(/acme orders: token refused since .*: UNAUTHORIZED \(its token is held/)
    expect(held).toMatchObject({ code: 3, stdout: expect.stringContaining('held for a refused token') })
    expect(held.metric('token_held')).toBe(1)
  })

  it('a daemon that was killed, until the next one begins: by status, a port where nobody answers, and a start without an end', async () => {
    const { server, api, watch, workspace, daemon, url } = await createDaemon('start', {
      instead: () => new Promise(() => {}),
    })
    const isRunning = async () => {
      const { stdout } = await workspace.run(['status', '--json'])
      return (JSON.parse(stdout) as Status).daemon.running
    }
    await server.arrivals(() => true, 1)
    await watch.arrival('/start')
    daemon.kill('SIGKILL')
    await daemon.ended

    const { stdout } = await workspace.run(['status', '--check'])
    expect(stdout).toMatch(/^daemon: process \d+, running since .* died without being stopped$/m)
    expect(stdout).toMatch(/^next: start the daemon again, .*: admin-mirror .*start$/m)
    await expect(fetch(`${url}healthz`)).rejects.toThrow()
    expect(watch.pings.map(({ path: at }) => at)).not.toContain('/switch')
    expect(await isRunning()).toBe(false)

    api.instead = () => null
    const next = workspace.startHere(['start'])
    await next.log(({ event }) => event === 'daemon_started')
    expect(await isRunning()).toBe(true)
    next.kill('SIGTERM')
    await next.ended
  })
})
