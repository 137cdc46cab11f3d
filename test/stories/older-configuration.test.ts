import fs from 'node:fs'
import { expect, vi } from 'vitest'
import { ACME, GLOBEX, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

it('a start whose configuration has changed since is told by status, resume and /check, which have one picture of the lists', async ({
  scene: { workspace, configure },
}) => {
  const settings = { schedule: '0 0 1 1 *', refresh: false, http: { port: 0 } }
  configure({ ...settings, organizations: [ACME] })
  const daemon = workspace.startHere(['start'])
  const { url } = await daemon.log(({ event }) => event === 'listening')
  await daemon.log(({ event }) => event === 'run_finished')
  /** What it answers is kept for a moment. */
  const answers = (expected: number, text: RegExp) =>
    vi.waitFor(
      async () => {
        const response = await fetch(`${String(url)}check`)
        expect([response.status, await response.text()]).toEqual([expected, expect.stringMatching(text)])
      },
      { timeout: 20_000 },
    )
  const told = async () => {
    const { code, stdout } = await workspace.run(['status', '--check'])
    return [code, stdout]
  }
  await answers(200, /^ok\n$/)

  configure({ ...settings, organizations: [ACME], keepRuns: '80d' })
  expect(await told()).toEqual([0, expect.stringMatching(/older configuration.*next: restart start/s)])
  expect((await workspace.run(['resume'])).stderr).toMatch(/^restart start .*sends the token that it has$/m)
  await answers(200, /^ok\n.*older configuration/)

  configure({ ...settings, organizations: [ACME, GLOBEX] })
  expect(await told()).toEqual([1, expect.stringMatching(/next: restart start/)])
  await answers(503, /older configuration.*globex orders/s)

  fs.rmSync(workspace.file('admin-mirror.yaml'))
  await answers(503, /^the configuration file is gone or wrong/)
  daemon.kill('SIGTERM')
  await daemon.ended
})
