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

/** Statements that write of budgets, and of processes that live: what no reader of lists sees. */
export const UNSEEN = /^\s*(?:INSERT INTO|UPDATE|DELETE FROM) sync_(?:gates|shares|workers)\b/

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

/** At which of its steps its connections to the server are cut, and for how long it stands still then. */
export interface Cut {
  step: Step
  count: number
  standsMs?: number
}

/** Thrown out of whatever a killed process was doing; nobody hears it, since nothing of that process goes on. */
export class KilledError extends Error {
  override readonly name = 'KilledError'
}

/** A process that is only told of: all that it does goes through here, so that it can be stopped anywhere. */
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

export interface ProcessOptions {
  name: string
  acceptsRemovals: boolean
  fate: Fate
  onKill: (where: string) => void
  cut: Cut | null
  onCut: () => void
}

export function createProcess({ name, acceptsRemovals, fate, onKill, cut, onCut }: ProcessOptions) {
  const connections = new Set<Connection>()
  const stop = new AbortController()
  let alive = true
  let isHalted = false
  let asleep: (() => void)[] = []
  let leftToCut = cut?.count ?? 0
  let left = fate?.kind === 'killed at' ? fate.count : 0
  /** What has happened to it since it began: its connections were cut, it stood still, it got an answer with status 401. */
  const was = { cut: false, halted: false, refused: false }

  function die(where: string): void {
    if (!alive) return
    exit()
    asOnlooker(() => onKill(where))
  }

  /** It has ended. The operating system closes its connections: a transaction that is open is undone. */
  function exit(): void {
    alive = false
    asOnlooker(() => {
      for (const connection of connections) connection.close()
    })
  }

  function assertAlive(): void {
    if (!alive) throw new KilledError('killed')
  }

  /** A step that happens to it from outside. */
  function strike(step: Step): void {
    if (alive && cut?.step === step && --leftToCut === 0) asOnlooker(onCut)
    if (fate?.kind === 'killed at' && fate.step === step && --left === 0) die(step)
  }

  /** Runs `task` at once, or when a process that stands still goes on. */
  function whenAwake(task: () => void): void {
    if (isHalted) asleep.push(task)
    else task()
  }

  return {
    name,
    /** Started with --accept-removals. */
    acceptsRemovals,
    stop,
    was,
    isAlive: () => alive,
    own: (connection: Connection) => void connections.add(connection),
    disown: (connection: Connection) => void connections.delete(connection),
    /** A step of its own doing. Throws KilledError when it is struck there, or was before. */
    step(step: Step): void {
      assertAlive()
      strike(step)
      assertAlive()
    },
    strike,
    kill: () => die('some moment'),
    exit,
    /** Stands still, as after SIGSTOP, until `wakeUp` is called. */
    halt(): void {
      isHalted = true
      was.halted = true
    },
    wakeUp(): void {
      isHalted = false
      const tasks = asleep
      asleep = []
      for (const task of tasks) task()
    },
    whenAwake,
    /** Waits until it does not stand still. */
    awake: () => new Promise<void>((resolve) => whenAwake(resolve)),
    /** Runs `task` as this process. */
    run<T>(task: () => T): T {
      return acting.run(this, task)
    },
    signal(): void {
      acting.run(this, () => stop.abort('SIGTERM'))
    },
  }
}
