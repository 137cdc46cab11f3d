import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createConnections, createTurns } from '../../src/listener/load.ts'

/** Two places. */
function createScene() {
  const connections = createConnections({ most: 2, forProbes: 0 })
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

const here = () => false

/** Turns by a clock that moves while somebody sleeps. */
function createTurnsAt(start: number) {
  const clock = { time: start }
  const turn = createTurns(
    () => clock.time,
    async (ms) => {
      clock.time += ms
    },
  )
  /** How long so many requests that come together wait, one after another. */
  const waits = async (count: number) => {
    const come = clock.time
    const all = Array.from({ length: count }, () => turn(here).then(() => clock.time - come))
    return Promise.all(all)
  }
  return { clock, turn, waits }
}

describe('the turns of answers', () => {
  it('let fifty at once wait for nothing, and spread what comes beyond by fifty a second', async () => {
    const all = await createTurnsAt(1_000_000).waits(151)

    expect(all.slice(0, 50).every((ms) => ms === 0)).toBe(true)
    expect([all[100], all[150]]).toEqual([1000, 2000])
  })

  it('forget a flood that is over', async () => {
    const { clock, waits } = createTurnsAt(1_000_000)
    await waits(1000)

    clock.time += 30_000

    expect((await waits(50)).every((ms) => ms === 0)).toBe(true)
  })

  it('make nobody wait for a clock that was set back', async () => {
    const { clock, waits } = createTurnsAt(1_000_000_000)
    await waits(1)

    clock.time -= 86_400_000

    expect(await waits(1)).toEqual([20])
  })

  it('are not taken by requests whose clients are gone', async () => {
    const { clock, turn, waits } = createTurnsAt(1_000_000)
    await waits(51)

    await Promise.all([turn(() => true), turn(here), turn(() => true)])

    expect(clock.time).toBe(1_000_020)
  })
})
