import { AsyncLocalStorage } from 'node:async_hooks'

/** What a process does that can be told apart, and before or after which it may be killed. */
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

export type Step = (typeof STEPS)[number]

/** What the operating system closes with the process that has it. */
interface Connection {
  close(): unknown
}

/** How a process is brought down before its work is done; null where it is left alone. */
export type Fate =
  | { kind: 'killed at'; step: Step; count: number }
  | { kind: 'killed after'; ms: number }
  | { kind: 'signalled'; ms: number }
  | null

/** Thrown out of whatever a killed process was doing; nobody hears it, since nothing of that process goes on. */
export class KilledError extends Error {
  override readonly name = 'KilledError'
}

/** A process that is only told of: all that it does goes through here, so that it can be stopped anywhere. */
export interface SimulatedProcess {
  readonly name: string
  /** A command that somebody typed, in contrast to `start`. */
  readonly byHand: boolean
  /** Started with --accept-removals. */
  readonly acceptsRemovals: boolean
  readonly stop: AbortController
  isAlive(): boolean
  /** Its connections, which the operating system closes with it. */
  own(connection: Connection): void
  disown(connection: Connection): void
  /** A step of its own doing. Throws KilledError when it is struck there, or was before. */
  step(step: Step): void
  /** A step that happens to it from outside. */
  strike(step: Step): void
  kill(): void
  /** Stands still, as after SIGSTOP, until `wakeUp` is called. */
  halt(): void
  wakeUp(): void
  /** Runs `task` at once, or when a process that stands still goes on. */
  whenAwake(task: () => void): void
  /** Waits until it does not stand still. */
  awake(): Promise<void>
  /** Its connections were cut: another process may have its jobs from now on. */
  noteCut(): void
  /** Whether it was cut off, or stood still, since it began. */
  wasCut(): boolean
  wasHalted(): boolean
  /** It got an answer with status 401. */
  noteRefusal(): void
  wasRefused(): boolean
  /** It has ended by itself; what it left open is closed with it. */
  exit(): void
  /** Runs `task` as this process. */
  run<T>(task: () => T): T
  signal(): void
}

const acting = new AsyncLocalStorage<SimulatedProcess | undefined>()

/** The process that is doing what happens now. */
export function actingProcess(): SimulatedProcess | undefined {
  return acting.getStore()
}

/** Runs `task` as nobody's doing: what looks on takes no steps. */
export function asOnlooker<T>(task: () => T): T {
  return acting.run(undefined, task)
}

export interface ProcessOptions {
  name: string
  byHand: boolean
  acceptsRemovals: boolean
  fate: Fate
  onKill: (process: SimulatedProcess, where: string) => void
  /** At which step its connections are cut, and what does that. */
  cut?: { step: Step; count: number } | null
  onCut?: (process: SimulatedProcess) => void
}

export function createProcess({
  name,
  byHand,
  acceptsRemovals,
  fate,
  onKill,
  cut = null,
  onCut = () => {},
}: ProcessOptions): SimulatedProcess {
  const connections = new Set<Connection>()
  const stop = new AbortController()
  let alive = true
  let [isHalted, wasHalted, wasCut, wasRefused] = [false, false, false, false]
  let asleep: (() => void)[] = []
  let leftToCut = cut ? cut.count : Number.POSITIVE_INFINITY
  let left = fate?.kind === 'killed at' ? fate.count : Number.POSITIVE_INFINITY

  function die(where: string): void {
    if (!alive) return
    alive = false
    closeAll()
    asOnlooker(() => onKill(process, where))
  }

  /** A transaction that is open is undone, as the next process to open the file would undo it. */
  function closeAll(): void {
    asOnlooker(() => {
      for (const connection of connections) connection.close()
    })
  }

  function strike(step: Step): void {
    if (alive && cut?.step === step && --leftToCut === 0) asOnlooker(() => onCut(process))
    if (fate?.kind !== 'killed at' || fate.step !== step) return
    left--
    if (left === 0) die(step)
  }

  function assertAlive(): void {
    if (!alive) throw new KilledError('killed')
  }

  const process: SimulatedProcess = {
    name,
    byHand,
    acceptsRemovals,
    stop,
    isAlive: () => alive,
    own(connection) {
      connections.add(connection)
    },
    disown(connection) {
      connections.delete(connection)
    },
    step(step) {
      assertAlive()
      strike(step)
      assertAlive()
    },
    strike,
    kill: () => die('some moment'),
    exit() {
      alive = false
      closeAll()
    },
    halt() {
      isHalted = true
      wasHalted = true
    },
    wakeUp() {
      isHalted = false
      const tasks = asleep
      asleep = []
      for (const task of tasks) task()
    },
    whenAwake(task) {
      if (isHalted) asleep.push(task)
      else task()
    },
    awake: () => new Promise((resolve) => process.whenAwake(resolve)),
    noteCut() {
      wasCut = true
    },
    wasCut: () => wasCut,
    wasHalted: () => wasHalted,
    noteRefusal() {
      wasRefused = true
    },
    wasRefused: () => wasRefused,
    run: (task) => acting.run(process, task),
    signal: () => acting.run(process, () => stop.abort('SIGTERM')),
  }
  return process
}
