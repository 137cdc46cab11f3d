import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization } from './workspace.ts'

/** Reads to the left from its middle on, and a shell would split it. */
const NAME = "it's \u202eacme"
const TOKEN = { token: '1|Secret-of-somebody-x7Qp93LmZt5VbRw' }

describe.concurrent('an organization with a name that a terminal would reorder and a shell would split', () => {
  it.each([
    ['sync', ['sync']],
    ['sync to a log of sentences', ['sync', '--log-format', 'pretty']],
    ['sync as JSON', ['sync', '--json']],
    ['backfill', ['backfill', '--org', NAME]],
    ['verify', ['verify']],
    ['status', ['status']],
    ['status as JSON', ['status', '--json']],
    ['check', ['check']],
    ['resume', ['resume']],
    ['forget', ['forget', '--org', NAME]],
    ['a command for another one', ['sync', '--org', 'nobody']],
  ])('is shown escaped by %s', async (_, args) => {
    const server = await serve((asked) => pageOf(items(4), asked))
    const acme = organization(NAME, 1, TOKEN)
    const settings = { baseUrl: server.url, organizations: [acme] }
    const workspace = createWorkspace(settings)
    await workspace.run(['sync'])
    const refusing = await serve(() => ({ status: 401, body: {} }))
    workspace.configure({ ...settings, baseUrl: refusing.url })
    await workspace.run(['sync'])

    const { stdout, stderr } = await workspace.run(args)

    expect(`${stdout}${stderr}`).toMatch(/\\u\{?202e/)
    expect(`${stdout}${stderr}`).not.toMatch(/\p{Cf}/u)
  })

  it('is quoted in the commands that messages propose', async () => {
    const server = await serve(() => ({ status: 401, body: {} }))
    const workspace = createWorkspace({
      baseUrl: server.url,
      organizations: [organization("it's acme", 1, TOKEN)],
    })

    const { logs } = await workspace.run(['sync'])
    const daemon = workspace.start(['start'])
    const refused = await daemon.log(({ error_code }) => error_code === 'UNAUTHORIZED')
    daemon.kill('SIGTERM')
    await daemon.ended

    const command = `admin-mirror resume --org 'it'\\''s acme'`
    expect(logs.find(({ error_code }) => error_code === 'UNAUTHORIZED')?.error_message).toContain(command)
    expect(refused.error_message).toContain(command)
  })
})

it('a collection that is none that is known, and close to one, is asked about', async () => {
  const server = await serve((asked) => pageOf(items(4), asked))
  const workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [organization('acme', 1)],
    collections: { order: {}, orders: false, establishments: false },
  })

  const { code, logs } = await workspace.run(['sync'])

  expect(code).toBe(0)
  expect(logs.filter(({ level }) => level === 'warn')).toMatchObject([
    { msg: expect.stringMatching(/order is none that is known.*is orders meant\?/) },
  ])
})
