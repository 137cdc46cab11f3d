import fs from 'node:fs'
import { expect, vi } from 'vitest'
import { ACME, GLOBEX, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

it('a start whose configuration has changed since is told by status and /check, which have one picture of the lists', async ({
  scene: { workspace, configure },
}) => {
  const settings = { schedule: '0 0 1 1 *', refresh: false, http: { port: 0 } }
  configure({ ...settings, organizations: [ACME] })
  const daemon = workspace.startHere(['start'])
  const { url } = await daemon.log(({ event }) => event === 'listening')
  await daemon.log(({ event }) => event === 'run_finished')
  const checked = async () => {
    const response = await fetch(`${String(url)}check`)
    return { status: response.status, text: await response.text() }
  }
  // What it answers is kept for a moment.
  const answers = (expected: object) =>
    vi.waitFor(async () => expect(await checked()).toEqual(expected), { timeout: 20_000 })
  await answers({ status: 200, text: 'ok\n' })

  configure({ ...settings, organizations: [ACME], keepRuns: '80d' })
  const older = await workspace.run(['status', '--check'])
  expect([older.code, older.stdout]).toEqual([
    0,
    expect.stringMatching(/older configuration.*next: restart start/s),
  ])
  await answers({ status: 200, text: expect.stringMatching(/^ok\n.*older configuration/) })

  configure({ ...settings, organizations: [ACME, GLOBEX] })
  const added = await workspace.run(['status', '--check'])
  expect([added.code, added.stdout]).toEqual([1, expect.stringMatching(/next: restart start/)])
  await answers({
    status: 503,
    text: expect.stringMatching(/older configuration.*globex orders/s),
  })

  const file = workspace.file('admin-mirror.yaml')
  fs.renameSync(file, `${file}.away`)
  await answers({ status: 503, text: expect.stringMatching(/^the configuration file is gone or wrong/) })
  fs.renameSync(`${file}.away`, file)

  daemon.kill('SIGTERM')
  await daemon.ended
  const next = workspace.startHere(['start'])
  const { url: again } = await next.log(({ event }) => event === 'listening')
  await next.log(({ event, organization }) => event === 'run_finished' && organization === 'globex')
  await vi.waitFor(async () => expect(await (await fetch(`${String(again)}check`)).text()).toBe('ok\n'), {
    timeout: 20_000,
  })
  next.kill('SIGTERM')
  await next.ended
})
