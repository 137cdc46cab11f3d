import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

// What bounds the load that clients cause, beside the limits that Node has of its own.

export interface ConnectionLimits {
  /** The most that are open at the same time. */
  most: number
  /** Places that stay free for probes while the others wait for their answers. */
  forProbes: number
}

/** Bounds the open connections, at the cost of idle ones: Node's own limit refuses new ones, so idle clients would keep a health probe out. */
export function createConnections({ most, forProbes }: ConnectionLimits) {
  // In the order in which they became idle: the first one has been idle for longest.
  const idle = new Set<Socket>()
  const owed = new Map<Socket, { answers: number }>()
  return {
    /** Notes a new connection. If there are too many, the one that has been idle for longest is ended, or the new one if none is. */
    admit(socket: Socket): void {
      const isFull = idle.size + owed.size >= most
      const [leaving = socket] = idle
      idle.add(socket)
      // One that is owed an answer leaves `owed` by the answer's own close event.
      socket.once('close', () => idle.delete(socket))
      if (isFull) leaving.destroy()
    },
    /** Notes that a connection is owed an answer, until that is sent. Ends the connection if all places except those for probes are taken. */
    watch(response: ServerResponse, isProbe: boolean): void {
      const { socket } = response
      if (!socket) return
      if (!isProbe && !owed.has(socket) && owed.size >= most - forProbes) {
        socket.destroy()
        return
      }
      const entry = owed.get(socket) ?? { answers: 0 }
      entry.answers++
      owed.set(socket, entry)
      idle.delete(socket)
      response.once('close', () => {
        entry.answers--
        if (entry.answers > 0) return
        owed.delete(socket)
        if (!socket.destroyed) idle.add(socket)
      })
    },
  }
}

/** Answers a second, of all clients together; and how many may come at once, as a browser and a few scrapers ask for them. */
const PER_SECOND = 50
const BURST = 50

/**
 * Returns a function that resolves when a request may be answered: one after another, and a flood gets PER_SECOND a second. A request
 * whose client has gone before its turn takes no turn: clients that ask and leave would keep all others waiting for minutes.
 * `now` is in epoch milliseconds.
 */
export function createTurns(
  now: () => number,
  sleep: (ms: number) => Promise<void>,
): (isGone: () => boolean) => Promise<void> {
  const step = 1000 / PER_SECOND
  let last = Promise.resolve()
  /** When the last turn was due. */
  let dueAt = 0
  async function take(): Promise<void> {
    const time = now()
    // A clock that was set back has left `dueAt` in the future.
    dueAt = Math.max(Math.min(dueAt, time) + step, time - BURST * step)
    if (dueAt > time) await sleep(dueAt - time)
  }
  return (isGone) => {
    last = last.then(() => (isGone() ? undefined : take()))
    return last
  }
}
