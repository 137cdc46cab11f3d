import { Client } from 'pg'
import type { Surroundings } from '../ground.ts'
import type { Mistake } from '../planted.ts'
import { actingProcess, asOnlooker, never, type SimulatedProcess, UNSEEN } from '../process.ts'

// What is under way, for which simulated time waits.

let busy = 0
const onIdle: (() => void)[] = []

/** Something is under way until the function that is returned is called. */
function beginWork(): () => void {
  let isDone = false
  busy++
  return () => {
    if (isDone) return
    isDone = true
    if (--busy === 0) for (const wake of onIdle.splice(0)) wake()
  }
}

async function busyWith<T>(promise: Promise<T>): Promise<T> {
  const done = beginWork()
  try {
    return await promise
  } finally {
    done()
  }
}

/** Resolves when nothing happens any more without time passing. */
export async function settleServer(): Promise<void> {
  for (let quiet = 0; quiet < 3; quiet++) {
    await new Promise((resolve) => setImmediate(resolve))
    if (busy === 0) continue
    await new Promise<void>((wake) => onIdle.push(wake))
    quiet = -1
  }
}

// Whose turn it is to use the server: one transaction runs after the other, so that the same seed has the same history.

let inside: Client | null = null
const waiting: (() => void)[] = []

/** Lets the next one in, if this one is inside. */
function leave(client: Client): void {
  if (inside !== client) return
  inside = null
  waiting.shift()?.()
}

interface ServerWatch extends Surroundings {
  /** Ends these connections, and has them ended when it returns. */
  terminate(backends: readonly number[]): void
}

let watch: ServerWatch | null = null

/** From now on this one is told what the simulated processes do. One history runs at a time. */
export function watchServer(next: ServerWatch): void {
  watch = next
}

const connections = new Map<SimulatedProcess, Set<Client>>()

/** Cuts all connections of a process, which lives on. The server drops their locks and what they have not committed. */
export function cutOff(process: SimulatedProcess): void {
  process.was.cut = true
  dropConnections(process)
}

/** All processes lose their connections: the server ends. */
export function cutAllOff(): void {
  for (const process of connections.keys()) if (process.isAlive()) cutOff(process)
}

/** Forgets all processes: the history is over. */
export function forgetConnections(): void {
  for (const process of connections.keys()) dropConnections(process)
}

function dropConnections(process: SimulatedProcess): void {
  const clients = [...(connections.get(process) ?? [])]
  connections.delete(process)
  // pg's types do not know the number of the server's process. There is none before the connection is made.
  const backends = clients.flatMap((client) => (client as unknown as { processID?: number }).processID ?? [])
  if (backends.length > 0) watch?.terminate(backends)
  for (const client of clients) {
    leave(client)
    // The news of it arrives by itself, in real time.
    const { stream } = client.connection
    if (!stream.destroyed) stream.once('close', beginWork())
    // What the process does about it is its own doing.
    process.run(() => stream.destroy())
  }
}

class BrokenConnection extends Error {
  readonly code = 'ECONNRESET'
}

const WRITES = /^\s*(?:WITH|INSERT|UPDATE|DELETE)\b/

type Sent = string | { text: string; values?: unknown[] }
type Callback = (error?: Error) => void

interface ClientMethods {
  query(this: Client, sent: Sent, ...rest: unknown[]): Promise<unknown>
  connect(this: Client, callback?: Callback): Promise<unknown> | undefined
  end(this: Client, callback?: Callback): Promise<unknown> | undefined
}

/** Makes each statement of each connection a step of the process that runs it, as long as the program runs. `planted`: a mistake. */
export function hookPostgres(planted: Mistake['statement']): void {
  const prototype = Client.prototype as unknown as ClientMethods
  const { query, connect, end } = prototype

  prototype.query = function hooked(this: Client, sent, ...rest) {
    const process = actingProcess()
    if (!process) return query.call(this, sent, ...rest)
    const { text: sql, values = [] } = typeof sent === 'string' ? { text: sent } : sent
    return ask(process, this, sql, async () => {
      if (!planted || typeof sent === 'string') return query.call(this, sent, ...rest)
      const other = planted({ sql, values }, process)
      return other ? query.call(this, { ...sent, text: other.sql, values: [...other.values] }) : { rows: [] }
    })
  }

  prototype.connect = function hooked(this: Client, callback) {
    const process = actingProcess()
    if (!process) return connect.call(this, callback)
    return told(
      open(process, this, async () => connect.call(this)),
      callback,
    )
  }

  prototype.end = function hooked(this: Client, callback) {
    const process = actingProcess()
    if (process) leave(this)
    const ended = busyWith(Promise.resolve(end.call(this)))
    if (process) connections.get(process)?.delete(this)
    return told(ended, callback && (() => callback()))
  }
}

/** As pg answers: by a callback where one is given, else by a promise. */
function told(promise: Promise<unknown>, callback?: Callback): Promise<unknown> | undefined {
  if (!callback) return promise
  promise.then(() => callback(), callback)
  return undefined
}

/** Waits until the process does not stand still and it is the turn of its client; never ends for one that is dead by then. */
async function begin(process: SimulatedProcess, client: Client): Promise<void> {
  if (inside !== client) await new Promise<void>((wake) => process.whenAwake(wake))
  // oxlint-disable-next-line no-unmodified-loop-condition -- others change it meanwhile
  while (inside !== null && inside !== client) await busyWith(new Promise<void>((wake) => waiting.push(wake)))
  inside = client
  if (process.isAlive()) return
  leave(client)
  await never()
}

async function open(process: SimulatedProcess, client: Client, connect: () => Promise<unknown>) {
  await begin(process, client)
  try {
    if (watch?.isLocked()) throw new BrokenConnection('connect ECONNREFUSED')
    await busyWith(connect())
    const own = connections.get(process) ?? new Set()
    connections.set(process, own.add(client))
    process.own({ close: () => dropConnections(process) })
    if (process.isAlive()) return
    dropConnections(process)
  } finally {
    leave(client)
  }
  await never()
}

async function ask(process: SimulatedProcess, client: Client, sql: string, send: () => Promise<unknown>) {
  const isInTransaction = inside === client
  await begin(process, client)
  const commits = sql === 'COMMIT' || (!isInTransaction && WRITES.test(sql))
  let stays = false
  try {
    if (process.survives(commits ? 'before commit' : 'statement')) {
      assertConnected(process, client)
      const result = await busyWith(send())
      stays = sql.startsWith('BEGIN') || (isInTransaction && sql !== 'COMMIT')
      if (commits && !UNSEEN.test(sql)) asOnlooker(() => watch?.onCommit(process))
      if (!commits || process.survives('after commit')) {
        // It may be written, and this process is not told.
        if (commits) assertConnected(process, client)
        return sql.includes('clock_timestamp()') ? atThisTime(result) : result
      }
    }
  } catch (error) {
    stays = false
    throw error
  } finally {
    if (!stays) leave(client)
  }
  return never()
}

/** The server's clock is a simulated one. */
function atThisTime(result: unknown): unknown {
  const { rows } = result as { rows: object[] }
  return { rows: rows.map((row) => ({ ...row, at: watch?.clock.wall() })) }
}

function assertConnected(process: SimulatedProcess, client: Client): void {
  if (watch?.isLocked()) cutOff(process)
  if (!connections.get(process)?.has(client)) throw new BrokenConnection('Connection terminated unexpectedly')
}
