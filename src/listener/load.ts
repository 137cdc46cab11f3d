import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

// What bounds the load that clients cause, beside the limits that Node has of its own.

export interface ConnectionLimits {
  /** The most that are open at the same time. */
  most: number
  /** Places that stay free for probes while the others wait for their answers. */
  forProbes: number
  /** How long an answer may take, slow reading included. Milliseconds. */
  answerMs: number
}

/** Node itself would refuse new connections when all places are taken: idle clients would keep a health probe out. */
export function createConnections(now: () => number, { most, forProbes, answerMs }: ConnectionLimits) {
  // In the order in which they became idle: the first one has been idle for longest.
  const idle = new Set<Socket>()
  const owed = new Map<Socket, { since: number; answers: number }>()
  return {
    /** Notes a new connection. If there are too many, the one that has been idle for longest is ended, or the new one if none is. */
    admit(socket: Socket): void {
      const isFull = idle.size + owed.size >= most
      const [leaving = socket] = idle
      idle.add(socket)
      // A connection that is owed an answer is in `owed`: the answer closes with it.
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
      const entry = owed.get(socket) ?? { since: now(), answers: 0 }
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
    /** Ends the connections that have been owed an answer for too long: Node does not notice a client that reads a byte now and then. */
    sweep(): void {
      for (const [socket, { since }] of owed) if (now() - since > answerMs) socket.destroy()
    },
  }
}

/**
 * Returns a function that resolves when a request may be answered: one after another, each after `waitMs`. A request whose client has gone
 * before its turn takes no turn: clients that ask and leave would keep all others waiting for minutes.
 */
export function createTurns(
  waitMs: () => number,
  sleep: (ms: number) => Promise<void>,
): (isGone: () => boolean) => Promise<void> {
  let last = Promise.resolve()
  return (isGone) => {
    last = last.then(async () => {
      if (isGone()) return
      const wait = waitMs()
      if (wait > 0) await sleep(wait)
    })
    return last
  }
}

/** Answers a second, of all clients together. */
const PER_SECOND = 50

/**
 * Returns a function that says how long (milliseconds) a request waits for its answer: not at all for as many as a browser and a
 * few scrapers send, while a flood gets PER_SECOND answers a second. `now` is in epoch milliseconds.
 */
export function createPace(now: () => number): () => number {
  const step = 1000 / PER_SECOND
  // The time at which the last request may be answered.
  let last = 0
  return () => {
    const time = now()
    // A clock that was set back must not make everybody wait.
    if (last > time + LONGEST_QUEUE_MS) last = time
    last = Math.max(last + step, time - BURST * step)
    return Math.max(0, last - time)
  }
}

/** How many answers may come at once. */
const BURST = 50

/** No queue is longer: the connections, and the requests on each, are limited. */
const LONGEST_QUEUE_MS = 300_000
