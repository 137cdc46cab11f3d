import { actingProcess } from '../process.ts'

/**
 * Time-outs of connections and statements, which pg, its pool and the program set, run in simulated time, as long as the
 * program runs: a busy machine must not change a history. A process that stands still acts on them when it goes on.
 */
export function hookTimers(): void {
  const { setTimeout: set, clearTimeout: clear } = globalThis
  const simulated = new WeakMap<object, () => void>()

  function hooked(task: (...values: unknown[]) => void, ms = 0, ...values: unknown[]): unknown {
    const process = actingProcess()
    if (!process) return set(task, ms, ...values)
    const timer = { ref: () => timer, unref: () => timer }
    simulated.set(
      timer,
      process.after(ms, () => task(...values)),
    )
    return timer
  }

  globalThis.setTimeout = hooked as unknown as typeof set
  globalThis.clearTimeout = (timer) => {
    const cancel = typeof timer === 'object' && timer !== null ? simulated.get(timer) : undefined
    if (cancel) cancel()
    else clear(timer)
  }
}
