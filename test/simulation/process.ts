import { AsyncLocalStorage } from 'node:async_hooks'
import { Readable, Writable } from 'node:stream'
import type { Runtime } from '../../src/cli/runtime.ts'
import type { VirtualClock } from './clock.ts'
import type { AimedBlow, Blow } from './happening.ts'
import type { Random } from './random.ts'

/** What a process does that can be told apart, and before or after which something may happen to it. */
export const STEPS = [
  'statement',
  'before commit',
  'after commit',
  'before mirror call',
  'after mirror call',
  'request',
  'served',
  'answer',
  'sleep',
  'refresh answer',
] as const

export type StepOfProcess = (typeof STEPS)[number]

/** Statements that write of budgets, and of processes that live: what no reader of lists sees. */
export const UNSEEN = /^\s*(?:INSERT INTO|UPDATE|DELETE FROM) sync_(?:gates|shares|workers)\b/

/** What the operating system closes with the process that has it. */
type Connection = Record<'close', () => unknown>

/** Thrown out of whatever a killed process was doing; nobody hears it, since nothing of that process goes on. */
export class KilledError extends Error {
  override readonly name = 'KilledError'
}

export type SimulatedProcess = ReturnType<typeof createProcess>

const acting = new AsyncLocalStorage<SimulatedProcess | undefined>()

/** The process that is doing what happens now. */
export function actingProcess(): SimulatedProcess | undefined {
  return acting.getStore()
}

/** Runs `task` as nobody's doing: what looks on takes no steps. */
export function asOnlooker<T>(task: () => T): T {
  return acting.run(undefined, task)
}

/** For what a dead process waits for. */
export function never<T>(): Promise<T> {
  return new Promise(() => {})
}

export interface ProcessOptions {
  name: string
  /** Started with --accept-removals. */
  acceptsRemovals: boolean
  /** The token of each organization when it starts. */
  tokens: ReadonlyMap<string, string>
  blows: readonly AimedBlow[]
  clock: VirtualClock
  /** Brings the blow down, at this step. */
  strike(process: SimulatedProcess, blow: Blow, step: StepOfProcess): void
}

/** A process that is only told of: all that it does goes through here, so that it can be stopped anywhere. */
export function createProcess({ name, acceptsRemovals, tokens, blows, clock, strike }: ProcessOptions) {
  const connections = new Set<Connection>()
  const stop = new AbortController()
  const coming = blows.flatMap((one) => ('step' in one ? { ...one } : []))
  let alive = true
  let isHalted = false
  const asleep: (() => void)[] = []

  const process = {
    name,
    acceptsRemovals,
    tokens,
    /** What has happened to it since it began: its connections were cut, it stood still, it got an answer with status 401. */
    was: { cut: false, halted: false, refused: false },
    /** How far the clock of its machine is ahead of the server's. */
    clockAheadMs: 0,
    /** The jobs that it is refreshing. */
    refreshing: new Set<string>(),
    /** Aborted by a signal. */
    signal: stop.signal,
    tellToStop: () => process.run(() => stop.abort('SIGTERM')),
    isAlive: () => alive,
    own: (connection: Connection) => void connections.add(connection),
    disown: (connection: Connection) => void connections.delete(connection),
    /** A step that happens to it from outside. */
    meet(step: StepOfProcess): void {
      for (const one of coming)
        if (one.step === step && --one.count === 0) asOnlooker(() => strike(process, one.blow, step))
    },
    /** A step of its own doing; false where it is struck dead there, or was before. */
    survives(step: StepOfProcess): boolean {
      if (alive) process.meet(step)
      return alive
    },
    /** The same, where a dead process cannot be left waiting. */
    step(step: StepOfProcess): void {
      if (!process.survives(step)) throw new KilledError('killed')
    },
    /** It has ended. The operating system closes its connections: a transaction that is open is undone. */
    exit(): void {
      alive = false
      asOnlooker(() => {
        for (const connection of connections) connection.close()
      })
    },
    /** Stands still, as after SIGSTOP, until `wakeUp` is called. */
    halt(): void {
      isHalted = true
      process.was.halted = true
    },
    wakeUp(): void {
      isHalted = false
      for (const task of asleep.splice(0)) task()
    },
    /** Runs `task` at once, or when a process that stands still goes on. */
    whenAwake(task: () => void): void {
      if (isHalted) asleep.push(task)
      else task()
    },
    /** Runs `task` as this process. */
    run<T>(task: () => T): T {
      return acting.run(process, task)
    },
    /** The same after so many milliseconds, if it lives and is awake by then, unless the function that is returned is called before. */
    after(ms: number, task: () => unknown): () => void {
      let isOver = false
      const cancel = clock.after(Math.max(1, Math.trunc(ms)), () => {
        process.whenAwake(() => {
          if (alive && !isOver) process.run(task)
        })
      })
      return () => {
        isOver = true
        cancel()
      }
    },
  }
  return process
}

const NOWHERE = new Writable({ write: (_chunk, _encoding, done) => done() })

/** What the program takes from its process, of which nothing is real. `processes`: all of the history by their names. */
export function createRuntime(
  process: SimulatedProcess,
  clock: VirtualClock,
  random: Random,
  processes: ReadonlyMap<string, SimulatedProcess>,
): Runtime {
  return {
    env: {},
    cwd: '/',
    processName: process.name,
    isAlive: (name) => processes.get(name)?.isAlive() ?? null,
    stdin: () => Readable.from([]),
    stdout: NOWHERE,
    stderr: NOWHERE,
    signal: process.signal,
    now: () => clock.wall() + process.clockAheadMs,
    elapsed: clock.now,
    /** As Node's own: at least a millisecond, and cut short with an AbortError. Whoever dies asleep never wakes. */
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (!process.survives('sleep')) return
        const wake = process.after(ms, () => {
          signal?.removeEventListener('abort', stop)
          resolve()
        })
        function stop(): void {
          wake()
          if (process.isAlive()) reject(new DOMException('The operation was aborted', 'AbortError'))
        }
        if (signal?.aborted) stop()
        else signal?.addEventListener('abort', stop, { once: true })
      }),
    yieldToEventLoop: async () => {},
    random: random.next,
    every(ms, task) {
      let cancel = wait()
      function wait(): () => void {
        return process.after(ms, () => {
          // The task may end this.
          cancel = wait()
          task()
        })
      }
      return () => cancel()
    },
    randomHex: () => Array.from({ length: 32 }, () => random.whole(0, 15).toString(16)).join(''),
    dieOnSignal: () => {},
  }
}
