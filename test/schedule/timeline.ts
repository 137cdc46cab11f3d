import type { Timing } from '../../src/schedule/scheduler.ts'

/** A clock for timers of a test: it moves when it is told to, and what sleeps is woken in turn. Epoch milliseconds. */
export interface Timeline extends Timing {
  /** Lets so much time pass. */
  pass(ms: number): Promise<void>
  /** Sets the clock on or back, which no timer notices. */
  set(ms: number): void
  /** How many sleep. */
  sleepers(): number
}

interface Sleeper {
  at: number
  wake: () => void
}

export function createTimeline(start: number): Timeline {
  let [time, shift] = [start, 0]
  const sleepers = new Set<Sleeper>()

  function earliest(): Sleeper | undefined {
    let first: Sleeper | undefined
    for (const one of sleepers) if (!first || one.at < first.at) first = one
    return first
  }

  return {
    now: () => time + shift,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const sleeper: Sleeper = { at: time + ms, wake: resolve }
        sleepers.add(sleeper)
        const stop = () => {
          sleepers.delete(sleeper)
          reject(new Error('aborted'))
        }
        sleeper.wake = () => {
          sleepers.delete(sleeper)
          signal.removeEventListener('abort', stop)
          resolve()
        }
        if (signal.aborted) stop()
        else signal.addEventListener('abort', stop)
      }),
    async pass(ms) {
      const end = time + ms
      await settle()
      for (let next = earliest(); next && next.at <= end; next = earliest()) {
        time = Math.max(time, next.at)
        next.wake()
        await settle()
      }
      time = end
    },
    set(ms) {
      shift += ms
    },
    sleepers: () => sleepers.size,
  }
}

/** Lets run what waits for promises alone. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await Promise.resolve()
}
