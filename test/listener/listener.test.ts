import got from 'got'
import { describe, expect, it } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { kept, openListener, type Source } from '../../src/listener/server.ts'
import { alarmText } from '../../src/report/status-text.ts'
import { atEndOfFile } from '../helpers/at-end-of-file.ts'
import { daemon, listOf, statusOf, TOKEN } from '../helpers/status.ts'

const WELL = statusOf([listOf('acme')])

/** A listener on a free port. `source`: null where no mirror is served yet. */
async function listen(source: Partial<Source> | null = {}, elapsed = () => performance.now()) {
  const listener = await openListener({ host: '127.0.0.1', port: 0 }, elapsed)
  atEndOfFile(() => listener.close())
  const errors: unknown[] = []
  if (source)
    listener.serve({
      health: async () => ({ stalled: null, unusable: null }),
      status: async () => WELL,
      onError: (error) => errors.push(error),
      ...source,
    })
  const ask = async (path: string, method: 'GET' | 'HEAD' | 'POST' = 'GET') => {
    const options = { method, throwHttpErrors: false, retry: { limit: 0 } } as const
    const { statusCode: status, headers: answered, body: text } = await got(listener.url + path, options)
    return { status, headers: answered, text }
  }
  return { errors, ask, port: Number(new URL(listener.url).port) }
}

describe('the listener', () => {
  it.each([
    ['', /^text\/html;/],
    ['check', /^text\/plain;/],
    ['healthz', /^text\/plain;/],
    ['readyz', /^text\/plain;/],
    ['metrics', /^text\/plain; version=0\.0\.4/],
    ['status.json', /^application\/json;/],
  ])('answers GET and HEAD on /%s; nobody may keep, frame or script it', async (path, type) => {
    const { ask } = await listen()

    const [whole, head] = [await ask(path), await ask(path, 'HEAD')]

    expect([whole.status, head.status, head.text]).toEqual([200, 200, ''])
    expect(whole.text).not.toBe('')
    expect(head.headers['content-type']).toBe(whole.headers['content-type'])
    expect(whole.headers).toMatchObject({
      'content-type': expect.stringMatching(type),
      'cache-control': 'no-store',
      'content-security-policy': expect.stringMatching(/^default-src 'none'; .*frame-ancestors 'none'$/),
      'x-content-type-options': 'nosniff',
    })
    expect(whole.headers).not.toHaveProperty('access-control-allow-origin')
  })

  it('cannot have an address that another process has, or that is not of this machine', async () => {
    const { port } = await listen()
    const open = (host: string) => openListener({ host, port }, () => 0)

    await expect(open('127.0.0.1')).rejects.toThrow(`127.0.0.1 port ${port}: another process listens there`)
    await expect(open('192.0.2.1')).rejects.toThrow(
      /choose another http\.host or http\.port \(EADDRNOTAVAIL\)/,
    )
  })

  it('refuses other methods with 405, and names its pages where it has none', async () => {
    const { ask } = await listen()

    expect(await ask('', 'POST')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } })
    expect(await ask('orders')).toMatchObject({ status: 404, text: expect.stringContaining('/metrics') })
  })

  it('shows the status as status --json has it, and reads the mirror once for all who ask within a second', async () => {
    let asked = 0
    const status = async () => {
      asked++
      return WELL
    }
    const { ask } = await listen({ status }, () => 1_000_000)

    const paths = ['', 'check', 'metrics', 'status.json']
    const answers = await Promise.all([...paths, ...paths].map((path) => ask(path)))

    expect(JSON.parse(answers.at(-1)?.text ?? '')).toEqual(WELL)
    expect(asked).toBe(1)
  })
})

const opening = 'the mirror is being opened\n'
const HELD = statusOf([listOf('acme', TOKEN)])
const throwing = (error: Error) => ({ status: () => Promise.reject(error) })

describe('health', () => {
  it.each<[string, Partial<Source> | null, Record<string, [number, string | RegExp]>]>([
    [
      'being opened',
      null,
      { '': [503, opening], check: [503, opening], healthz: [200, 'ok\n'], readyz: [503, opening] },
    ],
    [
      'stalled',
      { health: async () => ({ stalled: 'the scheduler sleeps', unusable: null }) },
      {
        healthz: [503, 'the scheduler sleeps\n'],
        readyz: [200, 'ok\n'],
        check: [503, 'the scheduler sleeps\n'],
        metrics: [200, /scheduler_ticking 0\n.*admin_mirror_usable 1\n/s],
      },
    ],
    [
      'on a full disk',
      {
        health: async () => ({ stalled: null, unusable: 'the disk is full' }),
        status: async () => statusOf([listOf('acme')], { unusable: 'the disk is full' }),
      },
      {
        healthz: [200, 'ok\n'],
        readyz: [503, 'the disk is full\n'],
        check: [503, /^the disk is full\nnext: /],
        metrics: [200, /scheduler_ticking 1\n.*admin_mirror_usable 0\n/s],
      },
    ],
    ['well', {}, { check: [200, 'ok\n'] }],
    [
      'in need of a token',
      { status: async () => HELD },
      { readyz: [200, 'ok\n'], check: [503, `${alarmText(HELD)}\n`] },
    ],
    [
      'well, but for a start with an older configuration',
      {
        status: async () =>
          statusOf([listOf('acme')], { daemons: [daemon(1), { ...daemon(2), outdated: true }] }),
      },
      { check: [200, /^ok\n.*has an older configuration/] },
    ],
    [
      'well, but publishes nothing',
      { status: async () => statusOf([listOf('acme')], { unpublished: 'EROFS' }) },
      { check: [200, 'ok\n1 of 1 lists are well; the published file is older than the mirror\n'] },
    ],
    [
      'damaged',
      throwing(new MirrorError('mirror.db is damaged; restore a copy')),
      {
        'status.json': [503, 'mirror.db is damaged; restore a copy\n'],
        // Prometheus would take a 503 for a process that is gone.
        metrics: [200, /scheduler_ticking 1\n(?!.*check_exit_code).*usable 1\n/s],
      },
    ],
    [
      'met by a defect',
      throwing(new TypeError('secret internals')),
      { 'status.json': [500, 'an internal error; the log has the details\n'] },
    ],
  ])('of a mirror that is %s', async (what, source, answers) => {
    const { ask, errors } = await listen(source)

    for (const [path, [status, text]] of Object.entries(answers)) {
      const expected = typeof text === 'string' ? text : expect.stringMatching(text)
      expect(await ask(path), path).toMatchObject({ status, text: expected })
    }
    expect(errors).toHaveLength(what === 'met by a defect' ? 1 : 0)
  })
})

it.each<[string, takesMs: number, passes: number, isKept: boolean]>([
  ['at once is used for a second', 0, 999, true],
  ['at once is used no longer', 0, 1000, false],
  ['slowly is used twenty times as long as it took', 300, 5999, true],
  ['slowly is used no longer than that', 300, 6000, false],
])('an answer that comes %s; so is an error', async (_, takesMs, passes, isKept) => {
  for (const isError of [false, true]) {
    let [now, computed] = [1_000_000, 0]
    const answer = async () => {
      computed++
      now += takesMs
      if (isError) throw new Error('damaged')
    }
    const get = kept(answer, () => now)

    await get().catch(() => {})
    now += passes
    await expect(get().catch((error: unknown) => error)).resolves.toEqual(
      isError ? new Error('damaged') : undefined,
    )
    expect(computed).toBe(isKept ? 1 : 2)
  }
})
