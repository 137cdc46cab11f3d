import fs from 'node:fs'
import { expect, it } from 'vitest'
import { type LogLine, stop } from '../helpers/processes.ts'
import { createScene, EVERY_SECOND, NEVER } from '../helpers/scene.ts'
import { organization, type Settings, variable } from '../helpers/workspace.ts'

// A 401 at the command. What holds whom: test/api/token-hold.test.ts and test/store/sqlite/tokens.test.ts.

const OLD = '1|Secret-of-old-Kf82hLq0Zx'
const NEW = '2|Secret-of-new-Wm51sTe7Ub'

/** Three organizations that share a token, and one with its own. */
const SHARING = [1, 2, 3].map((number) => organization(`sharing-${number}`, number, { token: OLD }))
const OTHER = organization('other', 4)

/** A server that refuses the old token, as long as `refusing` says so. */
async function createRefusing(settings: Partial<Settings> = {}) {
  const collections = { orders: {}, establishments: {} }
  const organizations = [...SHARING, OTHER]
  const scene = await createScene({
    settings: { organizations, collections, schedule: NEVER, concurrency: 1, ...settings },
  })
  const refusing = { is: true }
  scene.api.instead = ({ token }) =>
    token === OLD && refusing.is ? { status: 401, body: { message: `no: ${token}` } } : null
  const held = () =>
    scene.workspace.value(
      'SELECT group_concat(name ORDER BY name) FROM organizations WHERE held_since IS NOT NULL',
    )
  const sentOld = () => scene.server.asked.filter(({ token }) => token === OLD).length
  return { ...scene, refusing, held, sentOld }
}

const isRefusal = ({ event }: LogLine) => event === 'run_not_begun'
const isSuccess = ({ event, status }: LogLine) => event === 'run_finished' && status === 'succeeded'

it('a token that is refused is sent once, whoever else has it, and holds all of them; the others go on', async () => {
  const { workspace, configure, held, sentOld } = await createRefusing()
  const sync = await workspace.run(['sync', '--log-level', 'trace'])

  expect(sync).toMatchObject({ code: 3, stdout: '' })
  expect([sentOld(), held()]).toEqual([1, 'sharing-1,sharing-2,sharing-3'])
  expect(workspace.value("SELECT sum(rows) FROM sync_status WHERE organization = 'other'")).toBe(8)
  expect(sync.logs.find(({ error_code: code }) => code === 'UNAUTHORIZED')?.error_message).toMatch(
    /sharing-1.*401.*new token.*admin-mirror resume --org sharing-1/,
  )
  // Only the job that was refused has a line.
  const runs = workspace.rows("SELECT status, requests FROM sync_runs WHERE error_code = 'UNAUTHORIZED'")
  expect(runs).toEqual([{ status: 'failed', requests: 1 }])

  const org = ' --org sharing-1'
  for (const line of [`sync${org}`, `sync --refresh${org}`, `backfill${org}`, `verify${org}`, 'check']) {
    const { code, stdout, stderr } = await workspace.run(line.split(' '))
    expect([line, code]).toEqual([line, 3])
    expect(stdout + stderr).toContain('admin-mirror resume --org sharing-1')
    // Of two lists.
    for (const output of [stdout, stderr]) expect(output.split('resume').length).toBeLessThanOrEqual(2)
  }
  expect(sentOld()).toBe(1)

  // Resume needs no token and sends nothing.
  configure({
    organizations: [...SHARING, OTHER].map((one) => ({ ...one, token: variable('NOT_SET') })),
  })
  const resume = async (name: string) => (await workspace.run(['resume', '--org', name])).stderr
  expect(await resume('other')).toMatch(/^no organization was held; .*still held.*: admin-mirror resume$/m)
  expect(await resume('sharing-2')).toContain('no longer held: sharing-1, sharing-2, sharing-3')
  expect([held(), sentOld()]).toEqual([null, 1])
})

it('a held token is sent by start, whenever its time comes, only after resume in another terminal', async () => {
  const { workspace, refusing, sentOld } = await createRefusing({
    schedule: EVERY_SECOND,
    organizations: SHARING,
  })
  const start = workspace.startHere(['start', '--log-level', 'debug'])
  // Twice of each of the six lists, but for the one that was refused.
  await start.log(isRefusal, 11)
  expect(sentOld()).toBe(1)

  refusing.is = false
  await workspace.run(['resume', '--org', 'sharing-1'])
  await start.log(isSuccess)
  expect((await stop(start)).code).toBe(0)
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
  const { workspace, api, write, held, sentOld } = await withFile()
  write(OLD)
  api.instead = ({ token }) => {
    if (token !== OLD) return null
    write(NEW)
    return { status: 401, body: {} }
  }

  const codes = [(await workspace.run(['sync'])).code, (await workspace.run(['sync'])).code]

  expect([codes, sentOld(), held()]).toEqual([[3, 0], 1, null])
})

it('a token file is read by start for each run: missing, it fails its lists with CONFIGURATION; with another token than the one that was refused, they go on', async () => {
  const { workspace, server, write, held, sentOld } = await withFile({ schedule: EVERY_SECOND })
  const start = workspace.startHere(['start', '--log-level', 'debug'])
  const { organization: failed } = await start.log(({ error_code: code }) => code === 'CONFIGURATION')
  await start.log(isSuccess)
  expect([failed, server.asked.every(({ token }) => token === OTHER.token)]).toEqual(['acme', true])

  write(OLD)
  await start.log(({ error_code: code }) => code === 'UNAUTHORIZED', 3)
  expect(held()).toBe('acme')
  write(NEW)
  await start.log((line) => isSuccess(line) && line.organization === 'acme')
  expect((await stop(start)).code).toBe(0)
  expect([sentOld(), held()]).toEqual([1, null])
})
