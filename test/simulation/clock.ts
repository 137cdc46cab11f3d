import { Readable, Writable } from 'node:stream'
import type { Runtime } from '../../src/cli/runtime.ts'
import type { SimulatedProcess } from './process.ts'
import type { Random } from './random.ts'

/** A clock whose time, in epoch milliseconds, passes only from one timer to the next. */
export type VirtualClock = ReturnType<typeof createVirtualClock>

/** `settle`: waits for what does not answer at once. */
export function createVirtualClock(start: number, settle: () => Promise<void> = atOnce) {
  let time = start
  // In the order of their time; those of one time in the order they were set.
  const timers: { at: number; task: () => void }[] = []

  return {
    now: () => time,
    /** Runs `task` after so many milliseconds, unless the function that is returned is called before. */
    after(ms: number, task: () => void): () => void {
      const timer = { at: time + ms, task }
      const place = timers.findLastIndex(({ at }) => at <= timer.at) + 1
      timers.splice(place, 0, timer)
      return () => {
        const index = timers.indexOf(timer)
        if (index >= 0) timers.splice(index, 1)
      }
    },
    /** Lets everything happen that can happen without time passing. */
    settle,
    /** Goes on to the next timer and runs it; false where there is none left. */
    tick(): boolean {
      const timer = timers.shift()
      if (!timer) return false
      time = timer.at
      timer.task()
      return true
    },
  }
}

// SQLite answers at once and nothing else leaves the process: what is not settled by now waits for a timer.
function atOnce(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** A clock that people set: the program's own time. */
export type WallClock = ReturnType<typeof createWallClock>

export function createWallClock({ now }: VirtualClock) {
  let behind = 0
  return {
    now: () => now() - behind,
    setBack(ms: number): void {
      behind += ms
    },
    /** Whether it ever was. */
    wasSet: () => behind > 0,
  }
}

const NOWHERE = new Writable({ write: (_chunk, _encoding, done) => done() })

export interface RuntimeOptions {
  process: SimulatedProcess
  pid: number
  clock: VirtualClock
  /** What the process takes for the time. */
  now: () => number
  random: Random
  /** All of the history by their names, so that one knows of another that it has ended. */
  processes: Map<string, SimulatedProcess>
}

/** What the program takes from its process, of which nothing is real. */
export function createRuntime({ process, pid, clock, now, random, processes }: RuntimeOptions): Runtime {
  const hex = (digits: number) =>
    Array.from({ length: digits }, () => random.whole(0, 15).toString(16)).join('')
  const processName = `machine-${pid}-${hex(12)}`
  processes.set(processName, process)
  return {
    env: {},
    cwd: '/',
    processName,
    isAlive: (name) => processes.get(name)?.isAlive() ?? null,
    stdin: () => Readable.from([]),
    stdout: NOWHERE,
    stderr: NOWHERE,
    signal: process.stop.signal,
    now,
    elapsed: clock.now,
    sleep: (ms, stop) => sleep(process, clock, ms, stop),
    yieldToEventLoop: async () => {},
    random: random.next,
    every: (ms, task) => every(process, clock, ms, task),
    randomHex: () => hex(32),
    dieOnSignal: () => {},
  }
}

/** Until it is ended, or the process is. */
function every(process: SimulatedProcess, clock: VirtualClock, ms: number, task: () => unknown): () => void {
  let isOver = false
  const wait = () => {
    clock.after(ms, () => {
      process.whenAwake(() => {
        if (isOver || !process.isAlive()) return
        process.run(task)
        wait()
      })
    })
  }
  wait()
  return () => {
    isOver = true
  }
}

/** As Node's own: at least a millisecond, and cut short with an AbortError. */
function sleep(process: SimulatedProcess, clock: VirtualClock, ms: number, signal?: AbortSignal) {
  return new Promise<void>((resolve, reject) => {
    process.step('sleep')
    const stop = () => {
      wake()
      if (process.isAlive()) reject(new DOMException('The operation was aborted', 'AbortError'))
    }
    const wake = clock.after(Math.max(1, Math.trunc(ms)), () => {
      process.whenAwake(() => {
        signal?.removeEventListener('abort', stop)
        if (process.isAlive()) resolve()
      })
    })
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}
