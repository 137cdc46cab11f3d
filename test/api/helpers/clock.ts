/** Time that moves only when the test moves it. */
export interface SteppedClock {
  now: () => number
  /** Rejects at once when aborted, as that of node:timers/promises. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** Advances the time, wakes each sleeper at its time, and waits until all that can run has run. */
  pass(ms: number): Promise<void>
  /** How many sleep. */
  sleepers(): number
}

export function createSteppedClock(start = Date.UTC(2026, 10, 20, 8, 30)): SteppedClock {
  let time = start
  let sleepers: { at: number; wake: () => void }[] = []

  async function pass(ms: number): Promise<void> {
    const end = time + ms
    await settle()
    for (;;) {
      const due = sleepers.filter(({ at }) => at <= end).toSorted((one, other) => one.at - other.at)[0]
      if (!due) break
      sleepers = sleepers.filter((sleeper) => sleeper !== due)
      time = Math.max(time, due.at)
      due.wake()
      await settle()
    }
    time = end
    await settle()
  }

  function sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = () => {
        signal.removeEventListener('abort', stop)
        resolve()
      }
      const sleeper = { at: time + ms, wake }
      const stop = () => {
        sleepers = sleepers.filter((other) => other !== sleeper)
        reject(new DOMException('The operation was aborted', 'AbortError'))
      }
      if (signal.aborted) return stop()
      signal.addEventListener('abort', stop, { once: true })
      sleepers.push(sleeper)
    })
  }

  return { now: () => time, sleep, pass, sleepers: () => sleepers.length }
}

/** Waits until all that needs no time has run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
