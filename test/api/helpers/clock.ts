export interface Clock {
  now: () => number
  /** Returns at once, with the time gone by. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** All that was slept, in milliseconds. */
  slept: number[]
}

export function createClock(start = Date.UTC(2026, 10, 20, 8, 30)): Clock {
  const slept: number[] = []
  let time = start
  return {
    slept,
    now: () => time,
    sleep: async (ms, signal) => {
      signal.throwIfAborted()
      slept.push(ms)
      time += ms
    },
  }
}
