import net from 'node:net'
import type { Client, ClientBase } from 'pg'

interface AnswersOptions {
  /** A further connection, for a look at the others. */
  newClient: () => Client
  signal: AbortSignal
  /** Runs a task after `ms` milliseconds of real time. Returns a function that prevents it. */
  after: (ms: number, task: () => void) => () => void
}

/** After this long the server is asked whether it still works on a statement. */
const LOOK_AFTER_MS = 15_000

/** How often the server must say that it is not at work before a statement is given up: one look may come just as the answer does. */
const LOOKS = 2

/** How long an answer, or a connection, is waited for after the signal to stop. */
const ANSWER_WHEN_STOPPING_MS = 3000

const CLOSING_MS = 1000

/** Gives up statements and connections that do not answer any more, so that no process waits for them forever. */
export function createAnswers({ newClient, signal, after }: AnswersOptions) {
  const sockets = new Set<net.Socket>()

  /** Calls `giveUp` once the process was told to stop and has waited for a while. Returns a function that prevents it. */
  function whenStopped(giveUp: () => void): () => void {
    let prevent: (() => void) | undefined
    const begin = () => {
      prevent = after(ANSWER_WHEN_STOPPING_MS, giveUp)
    }
    if (signal.aborted) begin()
    else signal.addEventListener('abort', begin, { once: true })
    return () => {
      prevent?.()
      signal.removeEventListener('abort', begin)
    }
  }

  /** Whether the server works for this connection; null where it cannot say, since it lets nobody else in. */
  async function isAtWork(backend: number): Promise<boolean | null> {
    const client = newClient()
    client.on('error', () => {})
    try {
      await client.connect()
      const { rows } = await client.query(
        "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND state = 'active'",
        [backend],
      )
      return rows.length > 0
    } catch (error) {
      return (error as { code?: unknown }).code === '53300' ? null : false
    } finally {
      void client.end().catch(() => {})
    }
  }

  async function look(client: ClientBase, isOver: () => boolean): Promise<void> {
    // pg's types do not know the number of the server's process.
    const backend = Number((client as unknown as { processID: unknown }).processID)
    let idle = 0
    while (idle < LOOKS && !isOver()) {
      idle = (await isAtWork(backend)) === false ? idle + 1 : 0
      await new Promise<void>((wake) => after(idle > 0 ? 1000 : LOOK_AFTER_MS, wake))
    }
    if (!isOver()) destroy(client)
  }

  return {
    /** The answer of a statement; fails with its connection where the server is not at work on it. */
    async of<T>(client: ClientBase, answer: Promise<T>): Promise<T> {
      let isOver = false
      const stopWaiting = whenStopped(() => destroy(client))
      const stopLooking = after(LOOK_AFTER_MS, () => void look(client, () => isOver))
      try {
        return await answer
      } finally {
        isOver = true
        stopLooking()
        stopWaiting()
      }
    },
    /** A connection's socket, which ends with `close`. */
    socket(): net.Socket {
      const socket = new net.Socket()
      sockets.add(socket)
      const stopWaiting = whenStopped(() => {
        if (socket.connecting) socket.destroy()
      })
      socket.once('connect', stopWaiting)
      socket.once('close', () => {
        stopWaiting()
        sockets.delete(socket)
      })
      return socket
    },
    /** Gives up what is left, after a moment for what is being said. */
    close(): void {
      for (const socket of sockets) after(CLOSING_MS, () => socket.destroy())
    },
  }
}

/** Ends a connection at once, whatever the server is doing. */
export function destroy(client: ClientBase): void {
  const { connection } = client as unknown as { connection: { stream: net.Socket } }
  connection.stream.destroy()
}
