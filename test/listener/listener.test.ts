import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { MirrorError, UsageError } from '../../src/errors.ts'
import { createApp } from '../../src/listener/app.ts'
import type { JobStatus } from '../../src/report/status.ts'
import { listen } from './listening.ts'
import { at, job, NOW, overview, source } from './overviews.ts'

const PATHS = ['', 'check', 'healthz', 'readyz', 'metrics', 'status.json']
const well = () => source(overview([job('acme')]))

/** With any Host header, which fetch does not allow. */
function ask(port: number, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: '/status.json', headers }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
  })
}

describe('the listener', () => {
  it.each(PATHS)('answers GET and HEAD on /%s', async (path) => {
    const { url } = await listen(well())

    const got = await fetch(url(path))
    const head = await fetch(url(path), { method: 'HEAD' })

    expect([got.status, head.status]).toEqual([200, 200])
    expect((await got.text()).length).toBeGreaterThan(0)
    expect(await head.text()).toBe('')
    expect(head.headers.get('content-type')).toBe(got.headers.get('content-type'))
    expect(got.headers.get('content-type')).toMatch(
      { '': /^text\/html;/, 'status.json': /^application\/json;/ }[path] ?? /^text\/plain;/,
    )
  })

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('refuses %s with 405', async (method) => {
    const { url } = await listen(well())

    const answer = await fetch(url(''), method === 'POST' ? { method, body: 'x' } : { method })

    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe('GET, HEAD')
  })

  it('says which pages there are where it has none', async () => {
    const { url } = await listen(well())

    const answer = await fetch(url('orders'))

    expect(answer.status).toBe(404)
    expect(await answer.text()).toContain('/metrics')
  })

  it.each([...PATHS, 'nothing'])('lets no page frame, sniff, cache or script /%s', async (path) => {
    const { url } = await listen(well())

    const { headers } = await fetch(url(path))

    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/=]+'; script-src 'sha256-[\w+/=]+';.*frame-ancestors 'none'$/,
    )
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('access-control-allow-origin')).toBeNull()
  })

  it('refuses a host name that a page on the web may have for 127.0.0.1', async () => {
    const { port } = await listen(well())

    const statuses = [
      await ask(port, { host: 'rebound.example' }),
      await ask(port, { host: `localhost:${port}` }),
    ]

    expect(statuses).toEqual([421, 200])
  })

  it('answers under any name where it is reached from elsewhere, too, as in a network of containers', async () => {
    const { port } = await listen(well(), { host: '0.0.0.0' })

    expect(await ask(port, { host: 'admin-mirror:9464' })).toBe(200)
  })

  it('shows the status as status --json has it', async () => {
    const known = overview([job('acme')])
    const { url } = await listen(source(known))

    const shown = await (await fetch(url('status.json'))).json()

    expect(shown).toEqual(known.status)
  })

  it('reads the mirror once for all who ask within a second', async () => {
    const given = well()
    const { url } = await listen(given, { now: () => 1_000_000 })

    await Promise.all([...PATHS, ...PATHS, ...PATHS].map((path) => fetch(url(path))))

    expect(given.asked.overviews).toBe(1)
  })
})

const TROUBLE = { stalled: 'the scheduler sleeps', unusable: 'the disk is full' }

function sourceThatThrows(error: Error) {
  return source(overview([]), {
    overview() {
      throw error
    },
  })
}

describe('health', () => {
  it('is told while the mirror is being opened: the process lives, and is not ready', async () => {
    const { url } = await listen(null)

    const answers = await Promise.all(PATHS.map(async (path) => (await fetch(url(path))).status))

    expect(answers).toEqual([503, 503, 200, 503, 503, 503])
  })

  it('says why: the scheduler is stalled, the mirror cannot be used', async () => {
    const { url } = await listen(source(overview([]), { health: () => TROUBLE }))

    const [healthz, readyz] = await Promise.all([fetch(url('healthz')), fetch(url('readyz'))])

    expect([healthz.status, await healthz.text()]).toEqual([503, 'the scheduler sleeps\n'])
    expect([readyz.status, await readyz.text()]).toEqual([503, 'the disk is full\n'])
  })

  it('is in the metrics of a mirror that cannot be read, which are there all the same', async () => {
    const { url } = await listen(sourceThatThrows(new MirrorError('the server does not answer')))

    const metrics = await fetch(url('metrics'))

    expect(metrics.status).toBe(200)
    const lines = (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    expect(lines).toEqual(['admin_mirror_scheduler_ticking 1', 'admin_mirror_usable 0'])
  })

  it('is in the metrics of a server that is known to be away before a scraper gives up', async () => {
    const slept: number[] = []
    const app = createApp({
      source: () => source(overview([]), { health: () => TROUBLE, overview: () => new Promise(() => {}) }),
      isLoopback: () => false,
      onError: () => {},
      now: () => NOW,
      sleep: async (ms) => void slept.push(ms),
    })

    const metrics = await app.request('/metrics')

    expect(slept).toEqual([3000])
    expect(metrics.status).toBe(200)
    expect(await metrics.text()).toMatch(/\nadmin_mirror_usable 0\n/)
  })

  it('does not take the place of the metrics where these can be read all the same', async () => {
    const { url } = await listen(source(overview([job('acme')]), { health: () => TROUBLE }))

    const metrics = await (await fetch(url('metrics'))).text()

    expect(metrics).toMatch(/\nadmin_mirror_usable 0\n/)
    expect(metrics).toContain('admin_mirror_rows{')
  })

  it.each<[wrong: Partial<JobStatus>, told: string]>([
    [
      { held_since: at(1), held_reason: 'HTTP 401', next: 'resume' },
      `the only list needs attention (held for a refused token)\nacme orders: held since ${at(1)}: HTTP 401; next: resume\n`,
    ],
    [
      { overdue: true, due_at: at(9), next: 'sync' },
      `the only list needs attention (overdue)\nacme orders: overdue: by its schedule (*/15 * * * *) it should have been read at ${at(9)}, 9 minutes ago; next: sync\n`,
    ],
  ])('as an uptime monitor asks for it says what needs somebody: %j', async (wrong, told) => {
    const { url } = await listen(source(overview([job('acme', 'orders', wrong)])))

    const check = await fetch(url('check'))

    expect([check.status, await check.text()]).toEqual([503, told])
  })

  it('as an uptime monitor asks for it counts the scheduler and the mirror, too', async () => {
    for (const [health, told] of [
      [TROUBLE, 'the scheduler sleeps\n'],
      [{ ...TROUBLE, stalled: null }, 'the disk is full\n'],
    ] as const) {
      const { url } = await listen(source(overview([job('acme')]), { health: () => health }))
      const check = await fetch(url('check'))

      expect([check.status, await check.text()]).toEqual([503, told])
    }
  })

  it('of a mirror that cannot be read is shown with its message, and an error of ours without', async () => {
    const known = await listen(sourceThatThrows(new MirrorError('mirror.db is damaged; restore a copy')))
    const unknown = await listen(sourceThatThrows(new TypeError('secret internals')))

    const first = await fetch(known.url('status.json'))
    const second = await fetch(unknown.url('metrics'))

    expect([first.status, await first.text()]).toEqual([503, 'mirror.db is damaged; restore a copy\n'])
    expect(second.status).toBe(500)
    expect(await second.text()).toBe('an internal error; the log has the details\n')
    expect(unknown.errors).toHaveLength(1)
  })
})

describe('a port', () => {
  it('in use is a usage error that says what to do', async () => {
    const { port } = await listen(well())

    await expect(listen(null, { port })).rejects.toThrow(UsageError)
    await expect(listen(null, { port })).rejects.toThrow(
      `cannot listen on 127.0.0.1 port ${port}: another process listens there, maybe another start with this file; end it, or give this one another port: http.port may name an environment variable, and port 0 is any that is free`,
    )
  })

  it('of an address that the machine does not have, likewise', async () => {
    await expect(listen(null, { host: '192.0.2.1' })).rejects.toThrow('the machine has no such address')
  })

  it('is free again after the end, which waits for no client', async () => {
    const { listener, port, url } = await listen(well())
    await fetch(url(''))

    await listener.close()

    await expect(fetch(url(''))).rejects.toThrow()
    await expect(listen(null, { port })).resolves.toBeDefined()
  })
})
