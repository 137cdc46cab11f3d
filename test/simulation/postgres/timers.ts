import type { VirtualClock } from '../clock.ts'
import { actingProcess } from '../process.ts'

/** What a library may do with a timer of Node's. */
interface Timer {
  cancel(): void
  ref(): Timer
  unref(): Timer
}

let clock: Pick<VirtualClock, 'after'> | null = null

/** From now on timers of simulated processes run in this time. One history runs at a time. */
export function runTimersOn(next: Pick<VirtualClock, 'after'>): void {
  clock = next
}

/**
 * Time-outs of connections and statements, which pg, its pool and the program set, run in simulated time, as long as the
 * program runs: a busy machine must not change a history. A process that stands still acts on them when it goes on.
 */
export function hookTimers(): void {
  const { setTimeout: set, clearTimeout: clear } = globalThis

  function hooked(task: (...values: unknown[]) => void, ms = 0, ...values: unknown[]): unknown {
    const process = actingProcess()
    if (!process || clock === null) return set(task, ms, ...values)
    const cancel = clock.after(Math.max(1, ms), () => {
      process.whenAwake(() => {
        if (process.isAlive() && !isCancelled) process.run(() => task(...values))
      })
    })
    let isCancelled = false
    const timer: Timer = {
      cancel() {
        isCancelled = true
        cancel()
      },
      ref: () => timer,
      unref: () => timer,
    }
    return timer
  }

  globalThis.setTimeout = hooked as unknown as typeof set
  globalThis.clearTimeout = (timer) => {
    const simulated = timer as unknown as Partial<Timer> | undefined | null
    if (typeof simulated?.cancel === 'function') simulated.cancel()
    else clear(timer)
  }
}
