/** Runs `task` after so many real milliseconds, unless the function that is returned is called before. */
export function afterRealTime(ms: number, task: () => void): () => void {
  const timer = setTimeout(task, ms)
  timer.unref()
  return () => clearTimeout(timer)
}

/** What waiting for a database needs; its waits are short. */
export function shortPatience(signal = new AbortController().signal) {
  return {
    elapsed: () => performance.now(),
    sleep: (ms: number) => new Promise<void>((wake) => setTimeout(wake, Math.min(ms, 50))),
    every: () => () => {},
    signal,
  }
}
