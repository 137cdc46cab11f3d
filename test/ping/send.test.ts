import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createLine, type LineOptions, type PingKind, sendPing } from '../../src/ping/send.ts'

/** A line to a server that fails so often before it takes a ping. */
function createScene(failures: number, more: Partial<LineOptions> = {}) {
  const events: string[] = []
  let left = failures
  const line = createLine({
    send: async (kind) => {
      events.push(`try ${kind}`)
      if (left-- > 0) throw new Error('status 500')
    },
    sleep: async (ms) => {
      events.push(`pause ${ms}`)
    },
    onLost: (kind, reason) => events.push(`lost ${kind}: ${reason}`),
    onSent: (kind) => events.push(`sent ${kind}`),
    signal: new AbortController().signal,
    ...more,
  })
  return { line, events }
}

describe('a ping', () => {
  it('is tried three times, with pauses between, and then given up', async () => {
    const { line, events } = createScene(3)
    line.tell('fail', '')
    await line.idle()

    expect(events).toEqual([
      'try fail',
      'pause 1000',
      'try fail',
      'pause 2000',
      'try fail',
      'lost fail: status 500',
    ])
  })

  it.each<[PingKind, PingKind, string[]]>([
    [
      'start',
      'success',
      ['try start', 'pause 1000', 'try start', 'sent start', 'try success', 'sent success'],
    ],
    ['success', 'fail', ['try success', 'pause 1000', 'try fail', 'sent fail']],
    // The outcome is told, whatever begins after it.
    ['fail', 'start', ['try fail', 'pause 1000', 'try fail', 'sent fail', 'try start', 'sent start']],
  ])('of kind %s that fails once, with %s behind it', async (first, second, expected) => {
    const { line, events } = createScene(1)
    line.tell(first, '')
    await Promise.resolve()
    line.tell(second, '')
    await line.idle()

    expect(events).toEqual(expected)
  })

  it('that hangs is given up after its time, and the next one is tried', async () => {
    const { line, events } = createScene(0, {
      limitMs: 5,
      send: (kind, _text, signal) =>
        new Promise((_resolve, reject) => {
          events.push(`try ${kind}`)
          signal.addEventListener('abort', () => reject(new Error('no answer in time')))
        }),
    })
    line.tell('success', '')
    await line.idle()

    expect(events.filter((event) => event === 'try success')).toHaveLength(3)
    expect(events.at(-1)).toBe('lost success: no answer in time')
  })

  it('is waited for no longer once the process is told to stop', async () => {
    const stop = new AbortController()
    const { line, events } = createScene(0, {
      signal: stop.signal,
      limitMs: 3_600_000,
      send: (_kind, _text, signal) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(new Error('stopped'))),
        ),
    })
    line.tell('start', '')
    await Promise.resolve()
    line.tell('success', '')
    stop.abort()
    await line.idle()

    expect(events).toEqual([])
  })
})

describe('the request of a ping', () => {
  const OPTIONS = { userAgent: 'admin-mirror/0.0.0', signal: new AbortController().signal }

  it('goes to the address and the kind behind it, and fails without a word of the address', async () => {
    const asked: (string | undefined)[] = []
    const server = createServer(({ method, url }, response) => {
      asked.push(`${method} ${url}`)
      response.end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret-id`

    await sendPing(`${address}?a=1`, 'success', '', OPTIONS)
    await sendPing(`${address}//`, 'fail', '', OPTIONS)
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))

    expect(asked).toEqual(['POST /secret-id?a=1', 'POST /secret-id/fail'])
    await expect(sendPing(address, 'start', '', OPTIONS)).rejects.toThrow(/^ECONNREFUSED$/)
    await expect(sendPing('secret-id', 'start', '', OPTIONS)).rejects.toThrow(/^its address is not a URL$/)
  })
})
