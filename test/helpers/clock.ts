/** A clock that only moves when it is told to, or slept on. */
export interface Clock {
  now(): number
  sleep(ms: number): Promise<void>
  advance(ms: number): void
}

export const START = Date.parse('2026-11-20T08:00:00.000Z')

export function createClock(start = START): Clock {
  let time = start
  const advance = (ms: number) => {
    time += ms
  }
  return {
    now: () => time,
    sleep: async (ms) => advance(ms),
    advance,
  }
}

/** The time so many milliseconds after the clock's start, as the mirror writes it. */
export function timeAt(msAfterStart: number): string {
  return new Date(START + msAfterStart).toISOString()
}
