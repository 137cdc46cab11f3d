/** A clock whose time passes only from one timer to the next. */
export interface VirtualClock {
  /** Epoch milliseconds. */
  now(): number
  /** Runs `task` after so many milliseconds, unless the function that is returned is called before. */
  after(ms: number, task: () => void): () => void
  /** Lets everything happen that can happen without time passing. */
  settle(): Promise<void>
  /** Goes on to the next timer and runs it; false where there is none left. */
  tick(): boolean
}

/** A clock that people set: the program's own time. */
export interface WallClock {
  /** Epoch milliseconds. */
  now(): number
  setBack(ms: number): void
  /** Whether it was ever set. */
  wasSet(): boolean
}

export function createWallClock({ now }: VirtualClock): WallClock {
  let behind = 0
  return {
    now: () => now() - behind,
    setBack(ms) {
      behind += ms
    },
    wasSet: () => behind > 0,
  }
}

interface Timer {
  at: number
  task: () => void
}

/** `settle`: waits for what does not answer at once. */
export function createVirtualClock(start: number, settle: VirtualClock['settle'] = atOnce): VirtualClock {
  let time = start
  // In the order of their time; those of one time in the order they were set.
  const timers: Timer[] = []

  return {
    now: () => time,
    after(ms, task) {
      const timer = { at: time + ms, task }
      const place = timers.findLastIndex(({ at }) => at <= timer.at) + 1
      timers.splice(place, 0, timer)
      return () => {
        const index = timers.indexOf(timer)
        if (index >= 0) timers.splice(index, 1)
      }
    },
    settle,
    tick() {
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
