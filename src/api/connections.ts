import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Kept connections that one reader of a list has to itself. */
export interface Connections {
  agent: { http: HttpAgent; https: HttpsAgent }
  close(): void
}

export interface IdleLimits {
  /** Idle connections of all lists together. */
  mostIdle: number
  /** An idle connection is closed after so many milliseconds, or earlier if the server announces it. */
  idleMs: number
}

/** Hundreds of jobs may wait for their rate limit at once; most servers close what is idle for a minute themselves. */
const LIMITS: IdleLimits = { mostIdle: 100, idleMs: 30_000 }

/**
 * Opens connections that no other list shares. HTTP/1.1 does not say which request an answer belongs to: a proxy that
 * repeats an answer on a kept connection would hand the rows of one list to the next list that uses it.
 */
export function createConnectionPool(limits: IdleLimits = LIMITS): () => Connections {
  const idle = new Set<Duplex>()
  return () => {
    // The timeout of an agent closes idle connections only: an answer may take longer.
    const settings = { keepAlive: true, timeout: limits.idleMs }
    const http = watchIdle(new HttpAgent(settings), idle, limits.mostIdle)
    const https = watchIdle(new HttpsAgent(settings), idle, limits.mostIdle)
    return {
      agent: { http, https },
      close: () => {
        http.destroy()
        https.destroy()
      },
    }
  }
}

/**
 * Resolves after the process has read all bytes that had arrived: an idle connection that received some is closed by then.
 * One turn of the event loop may have looked for bytes before the call; the second one looks after it.
 */
export async function readArrived(): Promise<void> {
  await nextTurn()
  await nextTurn()
}

/** Keeps at most so many idle connections, and closes an idle one that receives bytes, as Node itself does since 24.21. */
function watchIdle<A extends HttpAgent>(agent: A, idle: Set<Duplex>, mostIdle: number): A {
  const { keepSocketAlive, reuseSocket } = agent
  function forget(this: Duplex): void {
    idle.delete(this)
  }
  agent.keepSocketAlive = (socket) => {
    if (idle.size >= mostIdle) return false
    idle.add(socket)
    socket.once('close', forget).once('data', destroy)
    return keepSocketAlive.call(agent, socket)
  }
  agent.reuseSocket = (socket, request) => {
    idle.delete(socket)
    socket.off('close', forget).off('data', destroy)
    reuseSocket.call(agent, socket, request)
  }
  return agent
}

function destroy(this: Duplex): void {
  this.destroy()
}
