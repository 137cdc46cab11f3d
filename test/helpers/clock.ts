/** A clock that only moves when it is told to, or slept on: then it returns at once, with the time gone by. */
export interface Clock {
  now(): number
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  advance(ms: number): void
  /** All that was slept, in milliseconds. */
  slept: number[]
}

export const START = Date.parse('2026-11-20T08:00:00.000Z')

export function createClock(start = START): Clock {
  const slept: number[] = []
  let time = start
  const advance = (ms: number) => {
    time += ms
  }
  return {
    now: () => time,
    async sleep(ms, signal) {
      signal?.throwIfAborted()
      slept.push(ms)
      advance(ms)
    },
    advance,
    slept,
  }
}

/** The time so many milliseconds after the clock's start, as the mirror writes it. */
export function timeAt(msAfterStart: number): string {
  return new Date(START + msAfterStart).toISOString()
}
