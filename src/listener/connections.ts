import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface Connections {
  /** Notes a new connection. If there are too many, one is ended: the new one only where all others are owed their first answer. */
  admit(socket: Socket): void
  /** Notes that an answer is owed on its connection, until it is sent; ends the connection if all places but those of probes are taken. */
  watch(response: ServerResponse, isProbe: boolean): void
  /** Ends the connections that have been owed an answer for too long without a moment's end. */
  sweep(): void
}

export interface ConnectionLimits {
  /** So many are open at the same time. */
  most: number
  /** So many of them are for probes, while the others are owed an answer. */
  forProbes: number
  /** So long may an answer take, slow reading included. */
  answerMs: number
  /** After so long, a new connection may take the place of one that still reads its answer. */
  slowMs: number
}

/**
 * Node limits the time of a request, and of silence, but not that of a client which reads a byte now and then; and it refuses
 * what comes when all places are taken, so that clients that ask nothing would keep a health probe out.
 */
export function createConnections(
  now: () => number,
  { most, forProbes, answerMs, slowMs }: ConnectionLimits,
): Connections {
  // In the order in which they were last owed nothing: the first one has been idle for longest.
  const idle = new Set<Socket>()
  const owed = new Map<Socket, { since: number; answers: number }>()

  const answered = new WeakMap<Socket, number>()

  /** The first of `owed` has been waiting for longest. */
  function slowest(): Socket | undefined {
    const [first] = owed
    return first && now() - first[1].since > slowMs ? first[0] : undefined
  }

  /** Undefined if nobody has had an answer. */
  function mostAnswered(): Socket | undefined {
    const [first] = [...owed.keys()].toSorted((a, b) => (answered.get(b) ?? 0) - (answered.get(a) ?? 0))
    return first && answered.has(first) ? first : undefined
  }

  return {
    admit(socket) {
      const isFull = idle.size + owed.size >= most
      const [leaving = isFull ? (slowest() ?? mostAnswered() ?? socket) : socket] = idle
      idle.add(socket)
      // Where it is owed an answer, that closes with it.
      socket.once('close', () => idle.delete(socket))
      if (isFull) leaving.destroy()
    },
    watch(response, isProbe) {
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
        answered.set(socket, (answered.get(socket) ?? 0) + 1)
        if (entry.answers > 0) return
        owed.delete(socket)
        if (!socket.destroyed) idle.add(socket)
      })
    },
    sweep() {
      for (const [socket, { since }] of owed) if (now() - since > answerMs) socket.destroy()
    },
  }
}
