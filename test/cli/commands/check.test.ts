import fs from 'node:fs'
import { expect } from 'vitest'
import { createSelfSigned } from '../../helpers/certificate.ts'
import { type Reply, serve } from '../../helpers/list-server.ts'
import { ACME, EVERY_SECOND, GLOBEX, sceneTests } from '../../helpers/scene.ts'
import { variable } from '../../helpers/workspace.ts'

// What check finds, what it says to do, and its exit code.

const it = sceneTests()
  .override({ options: { settings: { organizations: [ACME, GLOBEX] } } })
  .extend('checking', async ({ scene }) => ({
    ...scene,
    scene,
    /** The lines that say what is wrong are those of `bad`. */
    async check() {
      const { code, stdout, stderr } = await scene.workspace.run(['check'])
      expect(stderr).toBe('')
      const lines = stdout.trimEnd().split('\n')
      return { code, stdout, bad: lines.filter((line) => !line.startsWith('ok ')) }
    },
    refuseGlobex(reply: Reply) {
      scene.api.instead = ({ organization }) => (organization === GLOBEX.id ? reply : null)
    },
    ofGlobex: () => scene.server.asked.filter((asked) => asked.organization === GLOBEX.id).length,
  }))

const matching = (text: RegExp) => expect.stringMatching(text) as string

it('what is right is said in a line each, after one request a list, and check exits with 0', async ({
  checking: { server, workspace, check },
}) => {
  const { code, stdout, bad } = await check()

  expect([code, bad]).toEqual([0, []])
  expect(server.asked.map(({ page }) => page)).toEqual([1, 1])
  for (const line of [
    /^ok {4}acme orders +4 items on 2 pages$/m,
    /^ok {4}schedule +"\*\/15 \* \* \* \*" of 2 organizations: next (\S+ \S+, ){2}\S+ \S+ \(UTC\)$/m,
    /^ok {4}database .*mirror\.db can be written$/m,
  ])
    expect(stdout).toMatch(line)
  expect(workspace.rows('SELECT * FROM sync_runs')).toEqual([])
})

it.for<[number, number, RegExp]>([
  [401, 3, /refused \(401\).*resume --org globex/],
  [403, 3, /403/],
  [404, 3, /404/],
  [500, 1, /500/],
  [301, 1, /301/],
])('a %d is told after one request, exit code %d', async ([status, expected, message], { checking }) => {
  checking.refuseGlobex({ status, body: {} })

  const { code, bad } = await checking.check()

  expect([code, bad, checking.ofGlobex()]).toEqual([expected, [matching(/^fail {2}globex orders /)], 1])
  expect(bad[0]).toMatch(message)
})

it('a refused token is held, as by any run, and not sent again', async ({ checking }) => {
  checking.refuseGlobex({ status: 401, body: {} })
  await checking.check()

  const { code, bad } = await checking.check()

  expect([code, bad]).toEqual([3, [matching(/^fail {2}globex orders +not asked: .*refused/)]])
  expect(checking.ofGlobex()).toBe(1)
})

it('a wrong token that is tried holds no organization that a start reads with the right one, from its next run on', async ({
  checking: { workspace, scene, check, configure },
}) => {
  const wrong = '9|Secret-of-nobody-Hq83vZx1Lm'
  const settings = { schedule: EVERY_SECOND, refresh: false }
  scene.api.instead = ({ token }) => (token === wrong ? { status: 401, body: {} } : null)
  configure({ ...settings, organizations: [ACME] })
  const start = workspace.startHere(['start'])
  await start.log(({ event }) => event === 'run_finished')

  configure({ ...settings, organizations: [{ ...ACME, token: wrong }] })
  const { code } = await check()

  expect(code).toBe(3)
  await expect.poll(() => workspace.value('SELECT held_since FROM organizations')).toBeNull()
  expect((await check()).bad[0]).toMatch(/acme orders +not asked: /)
  start.kill('SIGTERM')
  await start.ended
})

it.for<[string, () => Promise<string>, RegExp]>([
  ['a mistyped host', async () => 'http://admin.exampel.invalid', /admin\.exampel\.invalid/],
  [
    'a certificate that is refused',
    async () => (await serve(() => ({}), createSelfSigned())).url,
    /signed by nobody whom this machine trusts; .*\(DEPTH_ZERO_SELF_SIGNED_CERT at/,
  ],
])('%s is told once, however many lists there are', async ([, address, message], { checking }) => {
  checking.configure({ baseUrl: await address() })

  const { code, bad } = await checking.check()

  expect([code, bad]).toEqual([1, [matching(/^fail {2}acme orders and 1 more list /)]])
  expect(bad[0]).toMatch(message)
})

it('all problems of the configuration are told, exit code 2', async ({ checking: { check, configure } }) => {
  configure({ organizations: [{ ...ACME, token: variable('NOT_SET') }], schedule: 'soon' })

  const { code, bad } = await check()

  expect(code).toBe(2)
  for (const problem of [/^fail {2}configuration .*schedule/, /^fail {2}configuration .*NOT_SET/])
    expect(bad).toContainEqual(matching(problem))
})

it('a folder that the published file cannot be put into is told, exit code 2', async ({
  checking: { check, configure, workspace },
}) => {
  configure({ publish: 'admin-mirror.yaml/copy.db' })
  fs.chmodSync(workspace.file('admin-mirror.yaml'), 0o600)

  expect(await check()).toMatchObject({ code: 2, bad: [matching(/^fail {2}publish .*may not write/)] })
})

it('a token file that is not there keeps no other list from being asked for, and a mirror that cannot be used goes before it', async ({
  checking: { workspace, server, check, configure },
}) => {
  configure({ organizations: [{ id: ACME.id, name: 'acme', tokenFile: 'missing' }, GLOBEX] })
  const missing = await check()
  for (const end of ['', '-wal', '-shm']) fs.rmSync(workspace.mirror + end, { force: true })
  fs.writeFileSync(workspace.mirror, 'no database, but somebody needs it')
  const unusable = await check()

  expect(missing).toMatchObject({ code: 2, bad: [matching(/^fail {2}acme orders +.*no such file/)] })
  expect(unusable).toMatchObject({ code: 4, bad: [matching(/^fail {2}database .*mirror\.db/)] })
  expect(server.asked).toHaveLength(1)
})

it('another key, and another address, exit with 2, as a sync does; nothing is sent', async ({
  checking: { workspace, server, check, configure },
}) => {
  await workspace.run(['sync'])
  const asked = server.asked.length
  configure({ collections: { establishments: false, orders: { key: 'state' } } })
  const key = await check()
  configure({ baseUrl: `${server.url}/other` })
  const address = await check()

  expect([key.code, key.bad]).toEqual([2, [matching(/orders by the key id, .* says state/)]])
  expect([address.code, address.bad]).toEqual([2, [matching(/127\.0\.0\.1\/other/)]])
  expect(server.asked).toHaveLength(asked)
})
