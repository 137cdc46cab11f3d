/** A clock whose time, in epoch milliseconds, passes only from one timer to the next. */
export type VirtualClock = ReturnType<typeof createVirtualClock>

export function createVirtualClock(start: number) {
  let time = start
  let behind = 0
  // In the order of their time; those of one time in the order they were set.
  const timers: { at: number; task: () => void }[] = []

  return {
    now: () => time,
    /** What all processes take for the time: people set their clock. */
    wall: () => time - behind,
    setBack(ms: number): void {
      behind += ms
    },
    /** Whether it ever was. */
    wasSet: () => behind > 0,
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
