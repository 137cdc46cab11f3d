import { Client } from 'pg'
import type { Mistake } from '../planted.ts'
import { actingProcess, asOnlooker, type SimulatedProcess, UNSEEN } from '../process.ts'

// Whose turn it is to use the server: one transaction runs after the other. And what is still under way, for which simulated time waits.

let inside: Client | null = null
let isTransaction = false
const waiting: (() => void)[] = []
let busy = 0
let onIdle: (() => void)[] = []

/** Something is under way until the function that is returned is called. */
function beginWork(): () => void {
  busy++
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    busy--
    if (busy > 0) return
    for (const wake of onIdle) wake()
    onIdle = []
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

/** Waits until nobody else is inside; false where it is not wanted any more by then. */
async function enter(client: Client, isWanted: () => boolean): Promise<boolean> {
  if (inside === client && isTransaction) return isWanted()
  const done = beginWork()
  // oxlint-disable-next-line no-unmodified-loop-condition -- others change it meanwhile
  while (inside !== null) await new Promise<void>((wake) => waiting.push(wake))
  done()
  if (!isWanted()) {
    waiting.shift()?.()
    return false
  }
  inside = client
  return true
}

/** Lets the next one in, if this one is inside. */
function leave(client: Client): void {
  if (inside !== client) return
  inside = null
  isTransaction = false
  waiting.shift()?.()
}

/** Resolves when nothing happens any more without time passing. */
export async function settleServer(): Promise<void> {
  for (let quiet = 0; quiet < 3; ) {
    await new Promise((resolve) => setImmediate(resolve))
    if (busy === 0) quiet++
    else {
      quiet = 0
      await new Promise<void>((wake) => onIdle.push(wake))
    }
  }
}

/** What looks on while the simulated processes use PostgreSQL. */
export interface ServerWatch {
  /** Whether the server is away at this moment. */
  isAway(): boolean
  /** Ends these connections, and has them ended when it returns. */
  terminate(backends: readonly number[]): void
  /** What the server's clock says. Epoch milliseconds. */
  clock(): number
  /** Not of a single statement that is UNSEEN. */
  onCommit(process: SimulatedProcess): void
}

let watch: ServerWatch = { isAway: () => false, terminate: () => {}, clock: () => 0, onCommit: () => {} }

/** From now on this one is told. One history runs at a time. */
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
  connections.clear()
}

function dropConnections(process: SimulatedProcess): void {
  const clients = [...(connections.get(process) ?? [])]
  connections.delete(process)
  const backends = clients.map(backendOf).filter((backend) => backend > 0)
  if (backends.length > 0) watch.terminate(backends)
  for (const client of clients) {
    leave(client)
    // The news of it arrives by itself, in real time.
    const { stream } = client.connection
    if (!stream.destroyed) stream.once('close', beginWork())
    // What the process does about it is its own doing.
    process.run(() => stream.destroy())
  }
}

function backendOf(client: Client): number {
  // pg's types do not know the number of the server's process.
  return Number((client as unknown as { processID: unknown }).processID ?? 0)
}

class BrokenConnection extends Error {
  readonly code = 'ECONNRESET'
}

const CLOCK = /clock_timestamp\(\)/
const WRITES = /^\s*(?:WITH|INSERT|UPDATE|DELETE)\b/

type Query = (this: Client, config: unknown, values?: unknown, callback?: unknown) => Promise<unknown>
type Connect = (this: Client, callback?: (error?: Error) => void) => Promise<unknown> | undefined

/**
 * Makes each statement of each connection a step of the process that runs it, as long as the program runs. One transaction
 * runs after the other, so that the same seed has the same history. `planted`: a mistake.
 */
export function hookPostgres(planted: Mistake['statement']): void {
  const prototype = Client.prototype as unknown as { query: Query; connect: Connect; end: Connect }
  const { query, connect, end } = prototype

  prototype.query = function hooked(this: Client, config: unknown, ...rest: [unknown?, unknown?]) {
    const process = actingProcess()
    if (!process) return query.call(this, config, ...rest)
    const text = typeof config === 'string' ? config : (config as { text: string }).text
    if (!planted || typeof config === 'string')
      return ask(process, this, text, () => query.call(this, config, ...rest))
    const { values = [] } = config as { values?: unknown[] }
    const other = planted({ sql: text, values }, process)
    const sent = other && { ...(config as object), text: other.sql, values: [...other.values] }
    return ask(process, this, text, async () => (sent ? query.call(this, sent) : { rows: [] }))
  }

  prototype.connect = function hooked(this: Client, callback?: (error?: Error) => void) {
    const process = actingProcess()
    if (!process) return connect.call(this, callback)
    const connected = open(process, this, () => connect.call(this) as Promise<unknown>)
    if (!callback) return connected
    connected.then(
      () => callback(),
      (error: Error) => callback(error),
    )
    return undefined
  }

  prototype.end = function hooked(this: Client, callback?: () => void) {
    const process = actingProcess()
    if (process) leave(this)
    const ended = busyWith(Promise.resolve(end.call(this)))
    if (process) connections.get(process)?.delete(this)
    if (!callback) return ended
    ended.then(callback, callback)
    return undefined
  }
}

function never<T>(): Promise<T> {
  return new Promise<T>(() => {})
}

async function open(process: SimulatedProcess, client: Client, connect: () => Promise<unknown>) {
  await process.awake()
  if (!(await enter(client, process.isAlive))) return never()
  try {
    if (watch.isAway()) throw new BrokenConnection('connect ECONNREFUSED')
    await busyWith(connect())
    const own = connections.get(process) ?? new Set()
    connections.set(process, own.add(client))
    process.own({ close: () => dropConnections(process) })
    if (!process.isAlive()) {
      dropConnections(process)
      return await never()
    }
    return client
  } finally {
    leave(client)
  }
}

async function ask(process: SimulatedProcess, client: Client, text: string, send: () => Promise<unknown>) {
  if (inside !== client) await process.awake()
  if (!(await enter(client, process.isAlive))) return never()
  const commits = text === 'COMMIT' || (!isTransaction && WRITES.test(text))
  let stays = false
  try {
    if (!take(process, commits ? 'before commit' : 'statement')) return await never()
    assertConnected(process, client)
    const result = await busyWith(send())
    if (text.startsWith('BEGIN') && inside === client) isTransaction = true
    if (commits) {
      if (!UNSEEN.test(text)) asOnlooker(() => watch.onCommit(process))
      if (!take(process, 'after commit')) return await never()
      // It is written, and this process is not told.
      assertConnected(process, client)
    }
    stays = inside === client && isTransaction && text !== 'COMMIT'
    return CLOCK.test(text) ? atThisTime(result) : result
  } finally {
    if (!stays) leave(client)
  }
}

/** The server's clock is a simulated one. */
function atThisTime(result: unknown): unknown {
  const { rows } = result as { rows: object[] }
  return { rows: rows.map((row) => ({ ...row, at: watch.clock() })) }
}

/** Takes a step; false where the process is dead by then. */
function take(process: SimulatedProcess, step: 'statement' | 'before commit' | 'after commit'): boolean {
  try {
    process.step(step)
    return process.isAlive()
  } catch {
    return false
  }
}

function assertConnected(process: SimulatedProcess, client: Client): void {
  if (watch.isAway()) cutOff(process)
  if (!connections.get(process)?.has(client)) throw new BrokenConnection('Connection terminated unexpectedly')
}
