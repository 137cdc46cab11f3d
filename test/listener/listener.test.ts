import { request } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { MirrorError, UsageError } from '../../src/errors.ts'
import { createCounters } from '../../src/listener/metrics.ts'
import { isLoopbackHost, kept, openListener, type Source } from '../../src/listener/server.ts'
import { isLoopback } from '../../src/loopback.ts'
import { atEndOfFile } from '../helpers/at-end-of-file.ts'
import { at, listOf, statusOf } from '../helpers/status.ts'

const PATHS = ['', 'check', 'healthz', 'readyz', 'metrics', 'status.json']
const WELL = statusOf([listOf('acme')])

/** A listener on a free port of loopback. */
async function listen(
  more: Partial<Source> | null = {},
  { host = '127.0.0.1', port = 0 } = {},
  now = Date.now,
) {
  const listener = await openListener({ host, port }, now)
  atEndOfFile(() => listener.close())
  const errors: unknown[] = []
  const source: Source = {
    health: async () => ({ stalled: null, unusable: null }),
    status: async () => WELL,
    counters: createCounters(),
    onError: (error) => errors.push(error),
    ...more,
  }
  if (more) listener.serve(source)
  return {
    listener,
    errors,
    port: Number(new URL(listener.url).port),
    url: (path: string) => `${listener.url}${path}`,
  }
}

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
    const { url } = await listen()

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

  it('refuses other methods with 405, and names its pages where it has none', async () => {
    const { url } = await listen()

    const posted = await fetch(url(''), { method: 'POST', body: 'x' })
    const missing = await fetch(url('orders'))

    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect([missing.status, await missing.text()]).toEqual([404, expect.stringContaining('/metrics')])
  })

  it.each(['', 'status.json', 'nothing'])('lets no page frame, sniff, cache or script /%s', async (path) => {
    const { url } = await listen()

    const { headers } = await fetch(url(path))

    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/=]+'; .*frame-ancestors 'none'$/,
    )
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('access-control-allow-origin')).toBeNull()
  })

  it('refuses a host name that a page on the web may have for 127.0.0.1', async () => {
    const { port } = await listen()

    expect(await ask(port, { host: 'rebound.example' })).toBe(421)
    expect(await ask(port, { host: `localhost:${port}` })).toBe(200)
  })

  it('answers under any name where it is reached from elsewhere, too, as in a network of containers', async () => {
    const { port } = await listen({}, { host: '0.0.0.0' })

    expect(await ask(port, { host: 'admin-mirror:9464' })).toBe(200)
  })

  it('shows the status as status --json has it', async () => {
    const { url } = await listen()

    expect(await (await fetch(url('status.json'))).json()).toEqual(WELL)
  })

  it('reads the mirror once for all who ask within a second', async () => {
    let asked = 0
    const status = async () => {
      asked++
      return WELL
    }
    const { url } = await listen({ status }, {}, () => 1_000_000)

    await Promise.all([...PATHS, ...PATHS, ...PATHS].map((path) => fetch(url(path))))

    expect(asked).toBe(1)
  })

  it('cuts off a client that sends its headers byte by byte, and answers others meanwhile', async () => {
    const { port, url } = await listen()
    const socket = connect(port, '127.0.0.1')
    let received = ''
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text
    })
    socket.on('error', () => {})
    socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n')
    const drip = setInterval(() => socket.write('X-A: 1\r\n'), 200)

    const meanwhile = await fetch(url('healthz'))
    await new Promise((resolve) => socket.once('close', resolve))
    clearInterval(drip)

    expect(meanwhile.status).toBe(200)
    expect(received).toMatch(/^HTTP\/1\.1 408 /)
  })
})

const TROUBLE = { stalled: 'the scheduler sleeps', unusable: 'the disk is full' }
const throwing = (error: Error) => ({ status: () => Promise.reject(error) })

describe('health', () => {
  it('is told while the mirror is being opened: the process lives, and is not ready', async () => {
    const { url } = await listen(null)

    const answers = await Promise.all(PATHS.map(async (path) => (await fetch(url(path))).status))

    expect(answers).toEqual([503, 503, 200, 503, 503, 503])
  })

  it('says why: the scheduler is stalled, the mirror cannot be used', async () => {
    const { url } = await listen({ health: async () => TROUBLE })
    const get = async (path: string) => {
      const answer = await fetch(url(path))
      return [answer.status, await answer.text()]
    }

    expect(await get('healthz')).toEqual([503, 'the scheduler sleeps\n'])
    expect(await get('readyz')).toEqual([503, 'the disk is full\n'])
    expect(await get('check')).toEqual([503, 'the scheduler sleeps\n'])
  })

  it('is in the metrics of a mirror that cannot be read, which are there all the same', async () => {
    const { url } = await listen({
      ...throwing(new MirrorError('the server does not answer')),
      health: async () => ({ stalled: null, unusable: 'the server does not answer' }),
    })

    const metrics = await fetch(url('metrics'))

    expect(metrics.status).toBe(200)
    const lines = (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    expect(lines).toEqual(['admin_mirror_scheduler_ticking 1', 'admin_mirror_usable 0'])
  })

  it('as an uptime monitor asks for it says what needs somebody', async () => {
    const status = statusOf([listOf('acme', { held_since: at(1), held_reason: 'HTTP 401' })])
    const { url } = await listen({ status: async () => status })

    const check = await fetch(url('check'))

    expect([check.status, await check.text()]).toEqual([
      503,
      `the only list needs attention (held for a refused token)
acme orders: token refused since ${at(1)} (60 seconds): UNAUTHORIZED (its token is held: it needs a new one)
next: give acme a new token, or if the old one is valid again: admin-mirror resume --org acme
`,
    ])
  })

  it('of a mirror that cannot be read is shown with its message, and an error of ours without', async () => {
    const known = await listen(throwing(new MirrorError('mirror.db is damaged; restore a copy')))
    const unknown = await listen(throwing(new TypeError('secret internals')))

    const first = await fetch(known.url('status.json'))
    const second = await fetch(unknown.url('metrics'))

    expect([first.status, await first.text()]).toEqual([503, 'mirror.db is damaged; restore a copy\n'])
    expect([second.status, await second.text()]).toEqual([
      500,
      'an internal error; the log has the details\n',
    ])
    expect(unknown.errors).toHaveLength(1)
  })
})

describe('a port', () => {
  it('in use is a usage error that says what to do', async () => {
    const { port } = await listen()

    await expect(listen(null, { port })).rejects.toThrow(UsageError)
    await expect(listen(null, { port })).rejects.toThrow(
      `cannot listen on 127.0.0.1 port ${port}: another process listens there`,
    )
  })

  it('is free again after the end, which waits for no client', async () => {
    const { listener, port, url } = await listen()
    await fetch(url(''))

    await listener.close()

    await expect(fetch(url(''))).rejects.toThrow()
    await expect(listen(null, { port })).resolves.toBeDefined()
  })
})

describe('an address', () => {
  it.each([
    ['127.0.0.1', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
    ['0.0.0.0', false],
    ['192.168.127.1', false],
    ['localhost', true],
    ['127.evil.example', false],
    ['::ffff:8.8.8.8', false],
  ])('%s is reached from this machine alone: %s', (address, expected) => {
    expect(isLoopback(address)).toBe(expected)
  })

  it.each([
    ['localhost', true],
    ['LocalHost:9464', true],
    ['127.0.0.1', true],
    ['[::1]:9464', true],
    ['[::ffff:127.0.0.1]:9464', true],
    ['', false],
    ['evil.example', false],
    ['mirror.localhost:9464', false],
    ['127.0.0.1.evil.example', false],
    ['192.168.0.1:9464', false],
    ['localhost evil', false],
    ['evil.example@127.0.0.1', false],
    ['[::2]', false],
  ])('as the Host header of a request to loopback: %j is %s', (host, expected) => {
    expect(isLoopbackHost(host)).toBe(expected)
  })
})

/** A clock that a computation moves by what it takes. */
function scene(takesMs: number) {
  const clock = { now: 1_000_000, computed: 0 }
  const compute = async () => {
    clock.computed++
    clock.now += takesMs
    return clock.computed
  }
  return { clock, get: kept(compute, () => clock.now) }
}

describe('a kept answer', () => {
  it.each([
    ['at once is used for a second', 0, 1000],
    ['slowly is used twenty times as long as it took', 300, 6000],
  ])('that comes %s', async (_, takesMs, keptMs) => {
    const { clock, get } = scene(takesMs)

    await get()
    clock.now += keptMs - 1
    await get()
    const before = clock.computed
    clock.now += 1
    await get()

    expect([before, clock.computed]).toEqual([1, 2])
  })

  it('is computed again after the clock was set back', async () => {
    const { clock, get } = scene(0)
    await get()

    clock.now -= 3_600_000
    await get()

    expect(clock.computed).toBe(2)
  })

  it('may be an error, which is not computed again at once either', async () => {
    let computed = 0
    const get = kept(
      async () => {
        computed++
        throw new Error('damaged')
      },
      () => 5,
    )

    await expect(get()).rejects.toThrow('damaged')
    await expect(get()).rejects.toThrow('damaged')

    expect(computed).toBe(1)
  })
})
