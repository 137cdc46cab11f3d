import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createPings, type PingsOptions } from '../../src/ping/pings.ts'
import { type Reply, serve } from '../helpers/list-server.ts'

const SECRET = 'a1b2c3d4-known-to-nobody-else'

/** A dead-man switch. */
async function createSwitch(reply: () => Reply = () => ({})) {
  const { url, ...server } = await serve(reply)
  return { url: `${url}/${SECRET}`, ...server }
}

/** Pings to an address, and how each of them ended. */
function pingsTo(address: string, verdict: PingsOptions['verdict'] = async () => WELL) {
  const stop = new AbortController()
  const ends: string[] = []
  const pings = createPings({
    address,
    userAgent: 'admin-mirror/0.0.0',
    verdict,
    onEnd: (kind, lost) => ends.push(`${kind} ${lost ?? 'sent'}`),
    signal: stop.signal,
  })
  return { stop, ends, pings }
}

const WELL = { isWell: true, text: '2 of 2 lists are well' }

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

describe('pings', () => {
  it('are one start and one outcome for all jobs that begin together', async () => {
    const watch = await createSwitch()
    const { pings, ends } = pingsTo(`${watch.url}?a=1`)

    const [first, second] = [pings.begin(), pings.begin()]
    await nextTurn()
    const later = pings.begin()
    first(null)
    await pings.idle()
    expect(ends).not.toContain('success sent')
    second(null)
    await pings.idle()
    later(null)
    await pings.idle()

    expect(
      watch.asked.map(({ method, path, query, body }) => [method, `${path}?${query.toString()}`, body]),
    ).toEqual([
      ['POST', `/${SECRET}/start?a=1`, ''],
      ['POST', `/${SECRET}/start?a=1`, ''],
      ['POST', `/${SECRET}?a=1`, '2 of 2 lists are well\n'],
      ['POST', `/${SECRET}?a=1`, '2 of 2 lists are well\n'],
    ])
  })

  it.each<[string, string | null, PingsOptions['verdict']]>([
    ['1 of 2 lists failed', null, async () => ({ isWell: false, text: '1 of 2 lists failed' })],
    ['the mirror cannot be read', null, () => Promise.reject(new Error('gone'))],
    ['its disk is full', 'its disk is full', async () => WELL],
  ])('fail with the verdict: %s', async (body, fault, verdict) => {
    const watch = await createSwitch()
    const { pings } = pingsTo(`${watch.url}//`, verdict)

    pings.begin()(fault)
    await pings.idle()

    expect(watch.asked.at(-1)).toMatchObject({ path: `/${SECRET}/fail`, body: `${body}\n` })
  })

  it('are tried again, follow no redirect, and name no part of the address when they are lost', async () => {
    let fails = 2
    const shaky = await createSwitch(() => ({
      status: fails-- > 0 ? 503 : 200,
      headers: { 'retry-after': '0' },
    }))
    const moved = await createSwitch(() => ({ status: 302, headers: { location: shaky.url } }))
    const mute = pingsTo(shaky.url.replace('http:', 'https:'))
    const [first, second] = [pingsTo(shaky.url), pingsTo(moved.url)]

    for (const { pings } of [first, second, mute]) pings.begin()(null)
    await Promise.all([first, second, mute].map(({ pings }) => pings.idle()))

    expect(first.ends).toEqual(['start sent', 'success sent'])
    expect(second.ends).toEqual(['start status 302', 'success status 302'])
    expect(mute.ends).toEqual([
      expect.stringMatching(/^start E[A-Z_]+$/),
      expect.stringMatching(/^success E[A-Z_]+$/),
    ])
    expect(shaky.asked).toHaveLength(4)
  })

  it.each([
    [200, 'sent'],
    [404, 'status 404'],
  ])('read nothing of an answer, which may never end: %d', async (status, end) => {
    const watch = await createSwitch(() => ({
      fault: (response) => {
        response.writeHead(status)
        const more = () => {
          while (response.write(' '.repeat(50_000)));
        }
        response.on('drain', more)
        more()
      },
    }))
    const { pings, ends } = pingsTo(watch.url)

    pings.begin()(null)
    await pings.idle()

    expect(ends).toEqual([`start ${end}`, `success ${end}`])
  })

  it('are not sent once the process is told to stop', async () => {
    const watch = await createSwitch(() => ({ fault: () => {} }))
    const { stop, pings, ends } = pingsTo(watch.url)
    const end = pings.begin()
    await watch.arrival(({ path }) => path.endsWith('/start'))
    end(null)
    stop.abort()
    await pings.idle()

    expect([ends, watch.asked.length]).toEqual([[], 1])
  })

  it('are given 10 seconds in all, which holds up nobody for longer', async () => {
    const { timeout } = AbortSignal
    const limits: number[] = []
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
      limits.push(ms)
      return timeout.call(AbortSignal, ms / 100)
    })
    onTestFinished(() => void vi.restoreAllMocks())
    const mute = await createSwitch(() => ({ fault: () => {} }))
    const all = [pingsTo(mute.url), pingsTo(mute.url, () => new Promise(() => {}))]

    for (const { pings } of all) {
      pings.begin()(null)
      await pings.idle()
    }

    expect(limits).toEqual([10_000, 10_000, 10_000, 10_000])
    const kinds = ['start', 'success', 'start', 'fail']
    expect(all.flatMap(({ ends }) => ends)).toEqual(kinds.map((kind) => `${kind} no answer in time`))
  })
})
