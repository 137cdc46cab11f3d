import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export interface SlowClients {
  /** Notes that an answer is owed on its connection, until it is sent. */
  watch(response: ServerResponse): void
  /** Ends the connections that have been owed an answer for too long without a moment's end. */
  sweep(): void
}

/** Node limits the time of a request, and of silence, but not that of a client which reads a byte now and then. */
export function createSlowClients(now: () => number, mostMs: number): SlowClients {
  const owed = new Map<Socket, { since: number; answers: number }>()
  return {
    watch(response) {
      const { socket } = response
      if (!socket) return
      const entry = owed.get(socket) ?? { since: now(), answers: 0 }
      entry.answers++
      owed.set(socket, entry)
      response.once('close', () => {
        entry.answers--
        if (entry.answers === 0) owed.delete(socket)
      })
    },
    sweep() {
      for (const [socket, { since }] of owed) if (now() - since > mostMs) socket.destroy()
    },
  }
}
