import fs from 'node:fs'
import { expect } from 'vitest'
import { stop } from '../../helpers/processes.ts'
import { ACME, EVERY_SECOND, GLOBEX, sceneTests } from '../../helpers/scene.ts'
import { type Settings, variable } from '../../helpers/workspace.ts'

// What check finds, what it says to do, and its exit code.

const it = sceneTests()
  .override({ options: { settings: { organizations: [ACME, GLOBEX] } } })
  .extend('check', async ({ scene: { workspace } }) => async () => {
    const { code, stdout, stderr } = await workspace.run(['check'])
    expect(stderr).toBe('')
    const lines = stdout.trimEnd().split('\n')
    return { code, stdout, bad: lines.filter((line) => !line.startsWith('ok ')) }
  })

const matching = (text: RegExp) => expect.stringMatching(text) as string

it('what is right is said in a line each, after one request a list, and check exits with 0', async ({
  scene: { server, workspace },
  check,
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
  [404, 3, /404/],
  [500, 1, /500/],
])('a %d is told after one request, exit code %d', async ([status, expected, message], { scene, check }) => {
  const answer = { status, body: {} }
  scene.api.instead = ({ organization }) => (organization === GLOBEX.id ? answer : null)

  const { code, bad } = await check()

  expect([code, bad]).toEqual([expected, [matching(/^fail {2}globex orders /)]])
  expect(bad[0]).toMatch(message)
  expect(scene.server.asked).toHaveLength(2)
})

it('a wrong token that is tried is held, and not sent again, but holds no organization that a start reads with the right one, from its next run on', async ({
  scene: { workspace, server, api, configure },
  check,
}) => {
  const wrong = '9|Secret-of-nobody-Hq83vZx1Lm'
  const settings = { schedule: EVERY_SECOND, refresh: false }
  api.instead = ({ token }) => (token === wrong ? { status: 401, body: {} } : null)
  configure({ ...settings, organizations: [ACME] })
  const start = workspace.startHere(['start'])
  await start.log(({ event }) => event === 'run_finished')

  configure({ ...settings, organizations: [{ ...ACME, token: wrong }] })
  const { code } = await check()

  expect(code).toBe(3)
  await expect.poll(() => workspace.value('SELECT held_since FROM organizations')).toBeNull()
  expect((await check()).bad[0]).toMatch(/acme orders +.*refused/)
  expect(server.asked.filter(({ token }) => token === wrong)).toHaveLength(1)
  await stop(start)
})

it('a mistyped host is told once, however many lists there are', async ({ scene, check }) => {
  scene.configure({ baseUrl: 'http://admin.exampel.invalid' })

  const { code, bad } = await check()

  expect([code, bad]).toEqual([
    1,
    [matching(/^fail {2}acme orders and 1 more list .*admin\.exampel\.invalid/)],
  ])
})

it.for<[what: string, settings: Partial<Settings>, asked: number, bad: RegExp[]]>([
  [
    'every problem of the configuration',
    { organizations: [{ ...ACME, token: variable('NOT_SET') }], schedule: 'soon' },
    0,
    [/^fail {2}configuration .*NOT_SET/, /^fail {2}configuration .*schedule/],
  ],
  [
    'another key',
    { collections: { establishments: false, orders: { key: 'state' } } },
    0,
    [/by the key id, .* says state/],
  ],
  ['another address', { baseUrl: 'http://127.0.0.1/other' }, 0, [/127\.0\.0\.1\/other/]],
])(
  'what a sync would be refused for is told, exit code 2: %s',
  async ([, settings, asked, bad], { synced, check }) => {
    synced.configure(settings)

    expect(await check()).toMatchObject({ code: 2, bad: bad.map(matching) })
    expect(synced.server.asked).toHaveLength(asked)
  },
)

it('a token file that is not there goes before other lists, which are asked for and refused, exit code 2', async ({
  scene,
  check,
}) => {
  scene.api.instead = () => ({ status: 404, body: {} })
  scene.configure({ organizations: [{ id: ACME.id, name: 'acme', tokenFile: 'missing' }, GLOBEX] })

  const bad = [/^fail {2}acme orders +.*no such file/, /^fail {2}globex orders +.*404/]
  expect(await check()).toMatchObject({ code: 2, bad: bad.map(matching) })
})

it('a mirror that cannot be used goes before all else, exit code 4', async ({ scene, check }) => {
  scene.configure({ organizations: [{ id: ACME.id, name: 'acme', tokenFile: 'missing' }] })
  fs.writeFileSync(scene.workspace.mirror, 'no database, but somebody needs it')

  expect(await check()).toMatchObject({ code: 4, bad: [matching(/^fail {2}database .*mirror\.db/)] })
})

it('a configuration without a list is told, before anything is sent or made', async ({ scene }) => {
  const { workspace, configure, server } = scene
  configure({ collections: { orders: false, establishments: false } })

  const { code, stderr } = await workspace.run(['check'])

  expect([code, stderr]).toEqual([2, matching(/^nothing to do: no such list is configured/)])
  expect([server.asked, fs.existsSync(workspace.mirror)]).toEqual([[], false])
})
