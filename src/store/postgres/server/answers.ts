import net from 'node:net'
import type { Client, ClientBase } from 'pg'
import { printable } from '../../../text.ts'

interface AnswersOptions {
  /** A further connection, for a look at the others. */
  newClient: () => Client
  signal: AbortSignal
  /** Runs a task after `ms` milliseconds of real time. Returns a function that prevents it. */
  after: (ms: number, task: () => void) => () => void
  /** Milliseconds. */
  now: () => number
  /** Reports whose lock a statement waits for. */
  report?: ((message: string) => void) | undefined
}

/** After this long the server is asked whether it still works on a statement. */
const LOOK_AFTER_MS = 15_000

/** How often the server must say that it is not at work before a statement is given up: one look may come just as the answer does. */
const LOOKS = 2

/** How long an answer, or a connection, is waited for after the signal to stop. */
const ANSWER_WHEN_STOPPING_MS = 3000

const CLOSING_MS = 1000

/** A lock may be held for hours. */
const NAMED_EVERY_MS = 60_000

/** Gives up statements and connections that do not answer any more, so that no process waits for them forever. */
export function createAnswers({ newClient, signal, after, now, report }: AnswersOptions) {
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

/** Who holds the lock that a statement waits for; `pid` is null if it waits for none. What the role may not see is null. */
export interface Holder {
  pid: number | null
  /** As PostgreSQL names it: advisory, relation, transactionid. */
  waits_for: string | null
  role: string | null
  program: string | null
  address: string | null
  since: Date | null
  /** The first word of its last statement. */
  word: string | null
  is_idle: boolean | null
}

/**
 * Whether the server works for the connection $1, and who keeps it waiting: the first of those that block it. The text of its statement may quote
 * data, so that only the first word of it leaves the server.
 */
const AT_WORK = `
  SELECT
    holder.pid,
    waiting.wait_event AS waits_for,
    holder.usename AS role,
    holder.application_name AS program,
    host(holder.client_addr) AS address,
    coalesce(holder.xact_start, holder.state_change) AS since,
    substring(holder.query FROM '^\\s*([A-Za-z]+)') AS word,
    holder.state <> 'active' AS is_idle
  FROM pg_stat_activity AS waiting
  LEFT JOIN LATERAL (
    SELECT *
    FROM pg_stat_activity
    WHERE pid = ANY (pg_blocking_pids(waiting.pid))
    ORDER BY coalesce(xact_start, state_change), pid
    LIMIT 1
  ) AS holder ON waiting.wait_event_type = 'Lock'
  WHERE waiting.pid = $1 AND waiting.state = 'active'
`

/** The first words of statements that are shown; any other word may be data. */
const KINDS =
  /^(?:SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|COPY|LOCK|ALTER|CREATE|DROP|TRUNCATE|VACUUM|ANALYZE|CLUSTER|REINDEX|REFRESH|BEGIN|FETCH|EXPLAIN)$/

/** `waiting for a lock on the PostgreSQL server that the role lea holds (psql, 10.0.0.7, process 4711) since ..., by ALTER` */
export function holderText({ pid, waits_for, role, program, address, since, word, is_idle }: Holder): string {
  const lock = waits_for === 'advisory' ? 'an advisory lock' : 'a lock'
  const who = role === null ? 'somebody' : `the role ${printable(role, 60)}`
  const from = [program && printable(program, 60), address, `process ${pid}`].filter(Boolean).join(', ')
  const kind = KINDS.test(word?.toUpperCase() ?? '')
    ? `, ${is_idle ? 'idle after' : 'by'} ${word?.toUpperCase()}`
    : ''
  const when = since === null ? '' : ` since ${since.toISOString()}`
  return `waiting for ${lock} on the PostgreSQL server that ${who} holds${when}${kind} (${from})`
}
