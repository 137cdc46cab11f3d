import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

// What bounds the load that clients cause, beside the limits that Node has of its own.

export interface ConnectionLimits {
  /** Open at the same time. */
  most: number
  /** Of them, kept for probes while the others are owed an answer. */
  forProbes: number
  /** The longest time for an answer, slow reading included. Milliseconds. */
  answerMs: number
}

/** Node would refuse what comes when all places are taken, so clients that ask nothing would keep a health probe out. */
export function createConnections(now: () => number, { most, forProbes, answerMs }: ConnectionLimits) {
  // In the order in which they were last owed nothing: the first one has been idle for longest.
  const idle = new Set<Socket>()
  const owed = new Map<Socket, { since: number; answers: number }>()
  return {
    /** Notes a new connection. If there are too many, the one that has been idle for longest is ended, or the new one if none is. */
    admit(socket: Socket): void {
      const isFull = idle.size + owed.size >= most
      const [leaving = socket] = idle
      idle.add(socket)
      // Where it is owed an answer, that closes with it.
      socket.once('close', () => idle.delete(socket))
      if (isFull) leaving.destroy()
    },
    /** Notes that an answer is owed on its connection, until it is sent; ends the connection if all places but those of probes are taken. */
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
 * Returns a function that resolves when a request may be answered: one after another, each as late as `waitMs` says. A request
 * whose client is gone by its turn takes none, or clients that ask and leave would keep all others waiting for minutes.
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
 * Returns a function that says how long (milliseconds) a request waits for its answer: as many requests as a browser and a
 * few scrapers send wait for nothing, and a flood is answered as slowly as PER_SECOND allows. `now` is in epoch milliseconds.
 */
export function createPace(now: () => number): () => number {
  const step = 1000 / PER_SECOND
  // The time of the last answer that was given away.
  let last = 0
  return () => {
    const time = now()
    // A clock that was set back must not make everybody wait.
    if (last > time + LONGEST_QUEUE_MS) last = time
    last = Math.max(last + step, time - BURST * step)
    return Math.max(0, last - time)
  }
}

/** Answers that need not be spread. */
const BURST = 50

/** No queue is longer: the connections, and the requests on each, are limited. */
const LONGEST_QUEUE_MS = 300_000
