import net from 'node:net'
import type { Client, ClientBase } from 'pg'
import { AT_WORK, type Holder, holderText } from './lock-holders.ts'

/** Statements and connections that nobody hears of any more are given up, so that no process waits for them forever. */
export interface Answers {
  /** The answer of a statement; fails with its connection where the server is not at work on it. */
  of<T>(client: ClientBase, answer: Promise<T>): Promise<T>
  /** A connection's socket, which ends with `close`. */
  socket(): net.Socket
  /** Gives up what is left, after a moment for what is being said. */
  close(): void
}

export interface AnswersOptions {
  /** A further connection, for a look at the others. */
  newClient: () => Client
  signal: AbortSignal
  /** Runs a task after so many milliseconds of real time. Returns a function that prevents it. */
  after: (ms: number, task: () => void) => () => void
  /** Milliseconds. */
  now: () => number
  /** Reports whose lock a statement waits for. */
  report?: ((message: string) => void) | undefined
}

/** A statement that takes so long is looked after. */
const LOOK_AFTER_MS = 15_000

/** A server that is at work says so; one look may meet the moment of the answer. */
const LOOKS = 2

/** So long is waited for an answer, or a connection, after the signal to stop. */
const STOPPING_MS = 3000

const CLOSING_MS = 1000

/** A lock may be held for hours. */
const NAMED_EVERY_MS = 60_000

export function createAnswers({ newClient, signal, after, now, report }: AnswersOptions): Answers {
  const sockets = new Set<net.Socket>()
  /** When each holder of a lock was named: several statements may wait for one. */
  const named = new Map<string, number>()

  function name(holder: Holder): void {
    const text = holderText(holder)
    if (now() - (named.get(text) ?? Number.NEGATIVE_INFINITY) < NAMED_EVERY_MS) return
    named.set(text, now())
    report?.(text)
  }

  /** Calls `giveUp` once the process was told to stop and has waited for a while. Returns a function that prevents it. */
  function whenStopped(giveUp: () => void): () => void {
    let prevent: (() => void) | undefined
    const begin = () => {
      prevent = after(STOPPING_MS, giveUp)
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
      const { rows } = await client.query<Holder>(AT_WORK, [backend])
      const [held] = rows
      if (held?.pid) name(held)
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
    async of(client, answer) {
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
    socket() {
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
    close() {
      for (const socket of sockets) after(CLOSING_MS, () => socket.destroy())
    },
  }
}

/** Ends a connection at once, whatever the server is doing. */
export function destroy(client: ClientBase): void {
  const { connection } = client as unknown as { connection: { stream: net.Socket } }
  connection.stream.destroy()
}
