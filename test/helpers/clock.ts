export const START = Date.parse('2026-11-20T08:00:00.000Z')

export type Clock = ReturnType<typeof createClock>

/** A clock that only moves when it is told to, or slept on: then it returns at once, with the time gone by. */
export function createClock(start = START) {
  let time = start
  const advance = (ms: number) => {
    time += ms
  }
  return {
    now: () => time,
    elapsed: () => time,
    async sleep(ms: number, signal?: AbortSignal): Promise<void> {
      signal?.throwIfAborted()
      advance(ms)
    },
    advance,
  }
}

/** The time so many milliseconds after the clock's start, as the mirror writes it. */
export function timeAt(msAfterStart: number): string {
  return new Date(START + msAfterStart).toISOString()
}

/** A clock that only moves when it is told to, and wakes each sleeper at its time. */
export function createSteppedClock(start = START + 30 * 60_000) {
  let time = start
  const sleepers = new Set<{ at: number; wake: () => void }>()
  return {
    now: () => time,
    /** Rejects at once when aborted, as that of node:timers/promises. */
    sleep: (ms: number, signal: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        const sleeper = { at: time + ms, wake: () => end(resolve) }
        const abort = () => end(() => reject(new DOMException('The operation was aborted', 'AbortError')))
        const end = (settled: () => void) => {
          signal.removeEventListener('abort', abort)
          sleepers.delete(sleeper)
          settled()
        }
        if (signal.aborted) return abort()
        signal.addEventListener('abort', abort)
        sleepers.add(sleeper)
      }),
    /** Advances the time, wakes each sleeper at its time, and waits until all that can run has run. */
    async pass(ms: number): Promise<void> {
      const until = time + ms
      await settle()
      for (;;) {
        const [next] = [...sleepers].filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at)
        if (!next) break
        time = Math.max(time, next.at)
        next.wake()
        await settle()
      }
      time = until
      await settle()
    },
    sleepers: () => sleepers.size,
  }
}

/** Waits until all that needs no time has run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
