import fs from 'node:fs'
import { expect, it } from 'vitest'
import type { LogLine } from '../helpers/processes.ts'
import { createScene, EVERY_SECOND, NEVER, type Scene } from '../helpers/scene.ts'
import { organization, type Settings, variable, type Workspace } from '../helpers/workspace.ts'

// A 401 at the command. What holds whom: test/api/token-hold.test.ts and test/store/sqlite/tokens.test.ts.

const OLD = '1|Secret-of-old-Kf82hLq0Zx'
const NEW = '2|Secret-of-new-Wm51sTe7Ub'

/** Three organizations that share a token, and one with its own. */
const SHARING = [1, 2, 3].map((number) => organization(`sharing-${number}`, number, { token: OLD }))
const OTHER = organization('other', 4)

/** A server that refuses the old token, as long as `refusing` says so. */
async function createRefusing(settings: Partial<Settings> = {}) {
  const scene = await createScene({
    settings: {
      organizations: [...SHARING, OTHER],
      collections: { orders: {}, establishments: {} },
      schedule: NEVER,
      concurrency: 1,
      ...settings,
    },
  })
  const refusing = { is: true }
  scene.api.instead = ({ token }) =>
    token === OLD && refusing.is ? { status: 401, body: { message: `no: ${token}` } } : null
  return { ...scene, refusing }
}

const sentWith = ({ server }: Scene, token: string) =>
  server.asked.filter((one) => one.token === token).length
const held = ({ value }: Workspace) =>
  value('SELECT group_concat(name ORDER BY name) FROM organizations WHERE held_since IS NOT NULL')
const isRefusal = ({ event }: LogLine) => event === 'run_not_begun'
const isSuccess = ({ event, status }: LogLine) => event === 'run_finished' && status === 'succeeded'

it('a token that is refused is sent once, whoever else has it, and holds all of them; the others go on', async () => {
  const scene = await createRefusing()
  const { workspace } = scene
  const sync = await workspace.run(['sync', '--log-level', 'trace'])

  expect(sync).toMatchObject({ code: 3, stdout: '' })
  expect([sentWith(scene, OLD), held(workspace)]).toEqual([1, 'sharing-1,sharing-2,sharing-3'])
  expect(workspace.value("SELECT sum(rows) FROM sync_status WHERE organization = 'other'")).toBe(8)
  expect(sync.logs.find(({ error_code: code }) => code === 'UNAUTHORIZED')?.error_message).toMatch(
    /sharing-1.*401.*new token.*admin-mirror resume --org sharing-1/,
  )
  // Only the job that was refused has a line.
  const runs = workspace.rows("SELECT status, requests FROM sync_runs WHERE error_code = 'UNAUTHORIZED'")
  expect(runs).toEqual([{ status: 'failed', requests: 1 }])

  for (const line of ['sync', 'sync --refresh', 'backfill', 'backfill --restart', 'verify', 'check']) {
    const org = line === 'check' ? [] : ['--org', 'sharing-1']
    const { code, stdout, stderr } = await workspace.run([...line.split(' '), ...org])
    expect([line, code]).toEqual([line, 3])
    expect(stdout + stderr).toContain('admin-mirror resume --org sharing-1')
  }
  expect(sentWith(scene, OLD)).toBe(1)

  // Resume needs no token and sends nothing.
  scene.configure({
    organizations: [...SHARING, OTHER].map((one) => ({ ...one, token: variable('NOT_SET') })),
  })
  const resume = async (name: string) => (await workspace.run(['resume', '--org', name])).stderr
  expect(await resume('OTHER')).toMatch(/^no organization was held; .*still held.*: admin-mirror resume$/m)
  expect(await resume('SHARING-2')).toContain('no longer held: sharing-1, sharing-2, sharing-3')
  expect([held(workspace), sentWith(scene, OLD)]).toEqual([null, 1])
})

it('a held token is sent by start, whenever its time comes, only after resume in another terminal', async () => {
  const scene = await createRefusing({ schedule: EVERY_SECOND, organizations: SHARING })
  const { workspace, refusing, server } = scene
  const start = workspace.startHere(['start'])
  // Twice of each of the six lists, but for the one that was refused.
  await start.log(isRefusal, 11)
  expect(sentWith(scene, OLD)).toBe(1)

  refusing.is = false
  server.asked.length = 0
  await workspace.run(['resume', '--org', 'sharing-1'])
  await start.log(isSuccess)
  start.kill('SIGTERM')
  expect((await start.ended).code).toBe(0)
  expect(server.asked.length).toBeGreaterThan(0)
})

it('a start with the token that was refused sends it no more when another command goes on with a new one, until resume', async () => {
  const settings = { organizations: SHARING.slice(0, 1), schedule: EVERY_SECOND, collections: { orders: {} } }
  const scene = await createRefusing(settings)
  const { workspace, configure, refusing } = scene
  const start = workspace.startHere(['start'])
  await start.log(isRefusal)
  configure({ ...settings, organizations: [organization('sharing-1', 1, { token: NEW })], schedule: NEVER })

  expect((await workspace.run(['sync'])).code).toBe(0)
  await start.log(isRefusal, 2)
  expect((await workspace.run(['sync'])).code).toBe(0)
  expect([sentWith(scene, OLD), held(workspace)]).toEqual([1, null])

  refusing.is = false
  await workspace.run(['resume'])
  await start.log(isSuccess)
  start.kill('SIGTERM')
  await start.ended
})

/** An organization whose token stands in a file, beside one with its own. */
async function withFile(settings: Partial<Settings> = {}) {
  const { token: _, ...acme } = organization('acme', 1, { tokenFile: 'acme.token' })
  const scene = await createRefusing({ organizations: [acme, OTHER], ...settings })
  const { file, secret } = scene.workspace
  const write = (token: string) => fs.writeFileSync(file('acme.token'), `${secret(token)}\n`)
  return { ...scene, write }
}

it('a token file that is exchanged while its token is refused has that one sent once, too, and goes on with the new one', async () => {
  const scene = await withFile()
  const { workspace, api, write } = scene
  write(OLD)
  api.instead = ({ token }) => {
    if (token !== OLD) return null
    write(NEW)
    return { status: 401, body: {} }
  }

  const codes = [(await workspace.run(['sync'])).code, (await workspace.run(['sync'])).code]

  expect([codes, sentWith(scene, OLD), held(workspace)]).toEqual([[3, 0], 1, null])
})

it('a token file that gets another token is read by start when the time of its lists comes again, and they go on', async () => {
  const scene = await withFile({ schedule: EVERY_SECOND })
  scene.write(OLD)
  const start = scene.workspace.startHere(['start'])
  await start.log(isRefusal, 2)
  expect(held(scene.workspace)).toBe('acme')

  scene.write(NEW)
  await start.log((line) => isSuccess(line) && line.organization === 'acme')
  start.kill('SIGTERM')

  expect((await start.ended).code).toBe(0)
  expect([sentWith(scene, OLD), held(scene.workspace)]).toEqual([1, null])
})

// What else may stand in its place: test/config/token-file.test.ts.
it('a token file that is missing fails the jobs that need it with CONFIGURATION, and no other', async () => {
  const { workspace, server } = await withFile()

  expect((await workspace.run(['sync'])).code).toBe(1)
  expect(workspace.rows('SELECT DISTINCT organization, error_code FROM sync_status ORDER BY 1')).toEqual([
    { organization: 'acme', error_code: 'CONFIGURATION' },
    { organization: 'other', error_code: null },
  ])
  expect(server.asked.every(({ token }) => token === OTHER.token)).toBe(true)
})
