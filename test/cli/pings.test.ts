import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { afterAll, describe, expect, it } from 'vitest'
import { items, pageOf, type Reply, serve } from './list-server.ts'
import { createWorkspace, organization } from './workspace.ts'

const ACME = organization('acme', 1)
const GLOBEX = organization('globex', 2)
const SECRET = 'a1b2c3d4-known-to-nobody-else'

interface Ping {
  method: string
  path: string
  body: string
  headers: Record<string, unknown>
}

const servers: { close(): void }[] = []

afterAll(() => {
  for (const server of servers) server.close()
})

/** A server on loopback that takes pings, and answers as `reply` says. */
async function createWatch(
  reply: (response: ServerResponse, count: number) => void = (response) => response.end(),
) {
  const pings: Ping[] = []
  const listener: RequestListener = (request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request
      pings.push({ method, path, body, headers })
      reply(response, pings.length)
    })
  }
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  servers.push({ close: () => server.close().closeAllConnections() })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : null
  return { pings, url: `http://127.0.0.1:${port}/${SECRET}`, paths: () => pings.map(({ path }) => path) }
}

async function createScene(ping: string, reply: (organization: string) => Reply | null = () => null) {
  const server = await serve((asked) => reply(asked.organization) ?? pageOf(items(4), asked))
  const settings = { baseUrl: server.url, organizations: [ACME, GLOBEX], ping, schedule: '0 0 1 1 *' }
  return { server, settings, workspace: createWorkspace(settings) }
}

describe.concurrent('the test ping of check', () => {
  it.each([
    ['that all is well', 200, '', /^ok {4}ping +127\.0\.0\.1:\d+ took a test ping$/m],
    [
      'that a list fails now, or failed when it was read last, so that no alarm ends by it',
      404,
      '/fail',
      /^ok {4}ping +127\.0\.0\.1:\d+ took a test ping \(fail: something is not well\)$/m,
    ],
  ])('tells %s', async (_title, status, end, line) => {
    const { pings, url, paths } = await createWatch()
    const { workspace } = await createScene(url, () => (status === 404 ? { status, body: {} } : null))

    const { stdout } = await workspace.run(['check'])

    expect(paths()).toEqual([`/${SECRET}${end}`])
    expect(pings[0]?.body).toBe('admin-mirror: a test by "check"\n')
    expect(stdout).toMatch(line)
    expect(stdout).not.toContain(SECRET)
  })

  it('is no success while a list fails that an earlier run left so', async () => {
    const { url, paths } = await createWatch()
    let isBroken = true
    const { workspace } = await createScene(url, () => (isBroken ? { status: 404, body: {} } : null))
    await workspace.run(['sync'])
    isBroken = false

    await workspace.run(['check'])

    expect(paths().at(-1)).toBe(`/${SECRET}/fail`)
  })

  it('that is refused is a warning with what came back, and --offline sends none', async () => {
    const { url, paths } = await createWatch((response) => response.writeHead(410).end())
    const { workspace } = await createScene(url)

    expect((await workspace.run(['check', '--offline'])).stdout).not.toMatch(/ping/)
    expect(paths()).toEqual([])
    expect(await workspace.run(['check'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^warn {2}ping +127\.0\.0\.1:\d+ did not take a test ping: status 410;/m),
    })
  })
})

describe.concurrent('pings', () => {
  it('tell of a sync that begins and succeeds, by POST, without a token or an item', async () => {
    const { pings, url, paths } = await createWatch()
    const { workspace } = await createScene(url)

    const { code, stderr } = await workspace.run(['sync'])

    expect(code).toBe(0)
    expect(paths()).toEqual([`/${SECRET}/start`, `/${SECRET}`])
    expect(pings.map(({ method }) => method)).toEqual(['POST', 'POST'])
    expect(pings[1]?.body).toMatch(
      /^admin-mirror: 2 lists in .*; 8 rows seen, 8 new, 0 changed, 0 removed\n$/,
    )
    expect(JSON.stringify(pings)).not.toMatch(/Secret-of|authorization|Bearer|"open"|"paid"/i)
    // The address is a secret of its own.
    expect(stderr).not.toContain(SECRET)
  })

  it('tell of a failure, with the lists that failed', async () => {
    const { pings, url, paths } = await createWatch()
    const { workspace } = await createScene(url, (id) =>
      id === GLOBEX.id ? { status: 401, body: { message: 'Mr Item was here' } } : null,
    )

    const { code } = await workspace.run(['sync'])

    expect(code).toBe(3)
    expect(paths()).toEqual([`/${SECRET}/start`, `/${SECRET}/fail`])
    expect(pings[1]?.body).toMatch(/\nglobex orders: UNAUTHORIZED \(.*token is held/)
    expect(pings[1]?.body).not.toContain('Mr Item')
  })

  it('go to the address of an organization that has its own, also of a backfill', async () => {
    const all = await createWatch()
    const own = await createWatch()
    const { workspace, settings } = await createScene(all.url)
    workspace.configure({ ...settings, organizations: [ACME, { ...GLOBEX, ping: own.url }] })

    await workspace.run(['sync'])
    await workspace.run(['backfill', '--org', 'globex'])

    expect(all.paths()).toEqual([`/${SECRET}/start`, `/${SECRET}`])
    expect(own.paths()).toEqual([`/${SECRET}/start`, `/${SECRET}`, `/${SECRET}/start`, `/${SECRET}`])
  })

  it('are sent by start for the lists that are due, and not by verify, which keeps nothing', async () => {
    const { url, paths, pings } = await createWatch()
    const { workspace } = await createScene(url)
    const daemon = workspace.start(['start', '--log-level', 'debug'])
    await daemon.logs(({ msg }) => msg === 'ping sent', 2)
    daemon.kill('SIGTERM')
    const { code } = await daemon.ended
    await workspace.run(['verify'])

    expect(code).toBe(0)
    expect(paths()).toEqual([`/${SECRET}/start`, `/${SECRET}`])
    expect(pings[0]?.body).toContain('2 lists')
  })

  it('are tried three times, and change nothing about the run', async () => {
    const { url, paths } = await createWatch((response) => response.writeHead(500).end())
    const { workspace } = await createScene(url)

    const { code, logs, stderr } = await workspace.run(['sync'])

    expect(code).toBe(0)
    expect(paths()).toEqual([`/${SECRET}/start`, `/${SECRET}`].flatMap((path) => [path, path, path]))
    expect(logs.filter(({ event }) => event === 'ping_lost')).toMatchObject([
      { level: 'warn', ping: 'start', reason: 'status 500' },
      {
        level: 'warn',
        ping: 'success',
        host: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
        reason: 'status 500',
      },
    ])
    expect(stderr).not.toContain(SECRET)
  })

  it.each([
    ['where nothing listens', '127.0.0.1:1', /^ECONNREFUSED$/],
    ['a host without an address', 'nowhere.invalid', /^(ENOTFOUND|EAI_AGAIN)$/],
  ])('to %s change nothing about the run', async (_what, host, reason) => {
    const watch = await createWatch()
    const { workspace, settings } = await createScene(watch.url)
    workspace.configure({ ...settings, ping: `http://${host}/${SECRET}` })

    const { code, logs, stderr } = await workspace.run(['sync'])

    expect(code).toBe(0)
    expect(logs.find(({ event }) => event === 'ping_lost')).toMatchObject({
      reason: expect.stringMatching(reason),
    })
    expect(stderr).not.toContain(SECRET)
  })

  it('take no proxy from the environment, and follow no redirect', async () => {
    const proxy = await createWatch()
    const elsewhere = await createWatch()
    const { url, paths } = await createWatch((response) =>
      response.writeHead(302, { location: elsewhere.url }).end(),
    )
    const { workspace } = await createScene(url)
    const { origin } = new URL(proxy.url)
    const env = { HTTP_PROXY: origin, http_proxy: origin, NODE_USE_ENV_PROXY: '1' }

    const { code } = await workspace.run(['sync'], { env })

    expect(code).toBe(0)
    expect(paths()).toContain(`/${SECRET}`)
    expect([...proxy.pings, ...elsewhere.pings]).toEqual([])
    // A redirect is no arrival: each ping is tried three times.
    expect(paths().filter((one) => one === `/${SECRET}`)).toHaveLength(3)
  })

  it('to a server that never answers do not keep a signal waiting', async () => {
    const { url } = await createWatch(() => {})
    const { workspace } = await createScene(url)
    const sync = workspace.start(['sync'])
    await sync.logs(({ event }) => event === 'run_finished', 2)

    const before = performance.now()
    sync.kill('SIGTERM')
    await sync.ended

    // One try alone would take ten seconds.
    expect(performance.now() - before).toBeLessThan(5000)
  })
})

describe('the address of pings', () => {
  it.each([
    'ftp://hc.example.com/x',
    'hc.example.com/x',
    'https://user:word@hc.example.com/x',
    'https://hc.example.com/x#y',
  ])('cannot be %s; the message does not repeat it', async (ping) => {
    const workspace = createWorkspace({ baseUrl: 'http://127.0.0.1:1', organizations: [ACME], ping })

    const { code, stderr } = await workspace.run(['status'])

    expect(code).toBe(2)
    expect(stderr).toMatch(/ping: must be an http or https address/)
    expect(stderr).not.toContain(ping)
  })

  it('may be a variable, which commands that send nothing do not need', async () => {
    const variable = `$\{PING}`
    const workspace = createWorkspace({
      baseUrl: 'http://127.0.0.1:1',
      organizations: [ACME],
      ping: variable,
    })

    expect((await workspace.run(['status'])).code).toBe(0)
    expect(await workspace.run(['sync'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('PING is not set'),
    })
  })
})
