import type { ServerResponse } from 'node:http'
import { describe, expect } from 'vitest'
import { createSwitch } from '../helpers/dead-man-switch.ts'
import type { Reply } from '../helpers/list-server.ts'
import { ACME, createScene, GLOBEX, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

// Pings of real commands. When one is sent, and what it says: test/ping.

const SECRET = 'a1b2c3d4-known-to-nobody-else'

/** Two lists, and a dead-man switch that answers as `reply` says. */
async function createWatched(reply?: (response: ServerResponse) => void) {
  const watch = await createSwitch(SECRET, reply)
  const settings = { organizations: [ACME, GLOBEX], ping: watch.url, schedule: '0 0 1 1 *' }
  const scene = await createScene({ settings })
  return {
    ...scene,
    ...scene.workspace,
    configure: scene.configure,
    watch,
    paths: () => watch.pings.map(({ path }) => path),
  }
}

const refusing = (status: number) => (): Reply => ({ status, body: { message: 'Mr Item was here' } })
const OUTCOMES = { start: `/${SECRET}/start`, success: `/${SECRET}`, fail: `/${SECRET}/fail` }

describe('the test ping of check', () => {
  it('tells whether all is well now, and was when it was read last, so that no alarm ends by it', async () => {
    const { run, api, watch, paths } = await createWatched()
    const well = await run(['check'])
    api.instead = refusing(404)
    const failing = await run(['check'])
    await run(['sync'])
    api.instead = () => null
    await run(['check'])

    expect(watch.pings[0]?.body).toBe('admin-mirror: a test by "check"\n')
    expect(well.stdout).toMatch(/^ok {4}ping +127\.0\.0\.1:\d+ took a test ping$/m)
    expect(failing.stdout).toMatch(
      /^ok {4}ping +127\.0\.0\.1:\d+ took a test ping \(fail: something is not well\)$/m,
    )
    const { start, success, fail } = OUTCOMES
    expect(paths()).toEqual([success, fail, start, fail, fail])
    expect(well.stdout + failing.stdout).not.toContain(SECRET)
  })

  it('that is refused is a warning with what came back, and --offline sends none', async () => {
    const { run, paths } = await createWatched((response) => response.writeHead(410).end())

    expect((await run(['check', '--offline'])).stdout).not.toMatch(/ping/)
    expect(paths()).toEqual([])
    expect(await run(['check'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^warn {2}ping +127\.0\.0\.1:\d+ did not take a test ping: status 410;/m),
    })
  })
})

describe('pings', () => {
  it('tell of a sync that begins, succeeds and fails, by POST, without a token or an item; not of a verify', async () => {
    const { run, api, watch, paths } = await createWatched()
    const { code, stderr } = await run(['sync'])
    await run(['verify'])
    api.instead = ({ organization }) => (organization === GLOBEX.id ? refusing(401)() : null)
    const failed = await run(['sync'])

    const { start, success, fail } = OUTCOMES
    expect([code, failed.code]).toEqual([0, 3])
    expect(paths()).toEqual([start, success, start, fail])
    expect(watch.pings[1]?.body).toMatch(
      /^admin-mirror: 2 lists in .*; 8 rows seen, 8 new, 0 changed, 0 removed\n$/,
    )
    expect(watch.pings[3]?.body).toMatch(/\nglobex orders: UNAUTHORIZED \(.*token is held/)
    expect(new Set(watch.pings.map(({ method }) => method))).toEqual(new Set(['POST']))
    expect(JSON.stringify(watch.pings)).not.toMatch(/Secret-of|authorization|Bearer|"open"|"paid"|Mr Item/i)

    api.instead = () => null
    await run(['sync', '--org', 'acme'])
    expect(paths().slice(4)).toEqual([start, fail])
    expect(watch.pings.at(-1)?.body).toMatch(/\n1 list failed:\nglobex orders: UNAUTHORIZED/)
    // The address is a secret of its own.
    expect(stderr).not.toContain(SECRET)
  })

  it('go to the address of an organization that has its own, also of a backfill; those of start, too', async () => {
    const { run, startHere, configure, paths, watch } = await createWatched()
    const own = await createSwitch(SECRET)
    configure({ organizations: [ACME, { ...GLOBEX, ping: own.url }] })
    const daemon = startHere(['start', '--log-level', 'debug'])
    await daemon.logs(({ msg }) => msg === 'ping sent', 4)
    daemon.kill('SIGTERM')
    await daemon.ended
    await run(['backfill', '--org', 'globex'])

    const { start, success } = OUTCOMES
    expect(paths()).toEqual([start, success])
    expect(own.pings.map(({ path }) => path)).toEqual([start, success, start, success])
    expect(watch.pings[0]?.body).toContain('1 list')
  })

  it('take no proxy from the environment, and follow no redirect', async () => {
    const [proxy, elsewhere] = [await createSwitch(), await createSwitch()]
    const { run, paths } = await createWatched((response) =>
      response.writeHead(302, { location: elsewhere.url }).end(),
    )
    const { origin } = new URL(proxy.url)
    const env = { HTTP_PROXY: origin, http_proxy: origin, NODE_USE_ENV_PROXY: '1' }

    expect((await run(['sync'], { env })).code).toBe(0)
    // A redirect is no arrival: each ping is tried three times.
    expect(paths().filter((one) => one === OUTCOMES.success)).toHaveLength(3)
    expect([...proxy.pings, ...elsewhere.pings]).toEqual([])
  })
})

describe('the address of pings', () => {
  it.for([
    'ftp://hc.example.com/x',
    'hc.example.com/x',
    'https://user:word@hc.example.com/x',
    'https://hc.example.com/x#y',
  ])('cannot be %s; the message does not repeat it', async (ping, { scene: { workspace, configure } }) => {
    configure({ ping })

    const { code, stderr } = await workspace.run(['status'])

    expect([code, stderr]).toEqual([2, expect.stringMatching(/ping: must be an http or https address/)])
    expect(stderr).not.toContain(ping)
  })

  it('may be a variable, which commands that send nothing do not need', async ({
    scene: { workspace, configure },
  }) => {
    configure({ ping: `$\{PING}` })

    expect((await workspace.run(['status'])).code).toBe(0)
    expect(await workspace.run(['sync'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('PING is not set'),
    })
  })
})
