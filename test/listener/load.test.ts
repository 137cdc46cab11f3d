import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createConnections, createPace, createTurns } from '../../src/listener/load.ts'

/** Two places. */
function createScene() {
  const limits = { most: 2, forProbes: 0, answerMs: 20_000 }
  const connections = createConnections(() => 1_000_000, limits)
  return {
    open() {
      const socket = new Socket()
      connections.admit(socket)
      return socket
    },
    /** A request came; the function ends its answer. */
    ask(socket: Socket) {
      const response = new ServerResponse(new IncomingMessage(socket))
      response.assignSocket(socket)
      connections.watch(response, false)
      return () => {
        response.detachSocket(socket)
        response.emit('close')
      }
    },
  }
}

it('a new connection takes the place of the one that has been idle for longest', async () => {
  const { open, ask } = createScene()
  const [first, second] = [open(), open()]
  // From now on it has been idle for less time than the second one.
  ask(first)()

  const third = open()

  expect([first, second, third].map(({ destroyed }) => destroyed)).toEqual([false, true, false])
})

it('a new connection is refused where all others wait for their answers', () => {
  const { open, ask } = createScene()
  const [first, second] = [open(), open()]
  ask(first)
  ask(second)

  const third = open()

  expect([first, second, third].map(({ destroyed }) => destroyed)).toEqual([false, false, true])
})

it('a connection that ended while it was owed an answer leaves its place, and is not taken for one that could leave it again', async () => {
  const { open, ask } = createScene()
  const [first, second] = [open(), open()]
  ask(first)
  ask(second)
  first.destroy()
  await new Promise((resolve) => first.once('close', resolve))

  const third = open()
  ask(third)
  const fourth = open()

  expect([second, third, fourth].map(({ destroyed }) => destroyed)).toEqual([false, false, true])
})

describe('the pace of answers', () => {
  it('lets fifty at once wait for nothing, and spreads what comes beyond by fifty a second', () => {
    const waitMs = createPace(() => 1_000_000)

    const waits = Array.from({ length: 151 }, waitMs)

    expect(waits.slice(0, 50).every((ms) => ms === 0)).toBe(true)
    expect([waits[100], waits[150]]).toEqual([1000, 2000])
  })

  it('forgets a flood that is over', () => {
    let now = 1_000_000
    const waitMs = createPace(() => now)
    for (let request = 0; request < 1000; request++) waitMs()

    now += 30_000

    expect(Array.from({ length: 50 }, waitMs).every((ms) => ms === 0)).toBe(true)
  })

  it('makes nobody wait for a clock that was set back', () => {
    let now = 1_000_000_000
    const waitMs = createPace(() => now)
    waitMs()

    now -= 86_400_000

    expect(waitMs()).toBeLessThanOrEqual(1000)
  })
})

it('a request whose client is gone by its turn takes none', async () => {
  const waits: number[] = []
  const turn = createTurns(
    () => 20,
    async (ms) => {
      waits.push(ms)
    },
  )

  await Promise.all([turn(() => true), turn(() => false), turn(() => true)])

  expect(waits).toEqual([20])
})
