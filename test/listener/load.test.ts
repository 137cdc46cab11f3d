import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { createConnections } from '../../src/listener/load.ts'

/** Two places, or some more of which two are for probes. */
function createScene({ most = 2, forProbes = 0 } = {}) {
  let now = 1_000_000
  const connections = createConnections(() => now, { most, forProbes, answerMs: 20_000 })
  return {
    connections,
    pass: (ms: number) => {
      now += ms
    },
    open() {
      const socket = new Socket()
      connections.admit(socket)
      return socket
    },
    /** A request came; the function ends its answer. */
    ask(socket: Socket, isProbe = false) {
      const response = new ServerResponse(new IncomingMessage(socket))
      response.assignSocket(socket)
      connections.watch(response, isProbe)
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

it('only a connection that still waits for its answer is ended for having waited too long', () => {
  const { connections, open, ask, pass } = createScene()
  const [first, second] = [open(), open()]
  ask(first)()
  ask(second)
  pass(21_000)

  connections.sweep()

  expect([first, second].map(({ destroyed }) => destroyed)).toEqual([false, true])
})

it('the last places are for probes: whoever asks for something else there is sent away', () => {
  const { open, ask } = createScene({ most: 4, forProbes: 2 })
  const [first, second, third, fourth] = [open(), open(), open(), open()]
  ask(first)
  ask(second)
  ask(third)
  ask(fourth, true)

  expect([first, second, third, fourth].map(({ destroyed }) => destroyed)).toEqual([
    false,
    false,
    true,
    false,
  ])
})
