/** How often the timer would like to run. */
const TICK_MS = 25

/** Runs the task, and measures for how long the event loop of this process stood still meanwhile, at most. Milliseconds. */
export async function longestStandstill<T>(
  task: () => Promise<T>,
): Promise<{ result: T; standstill: number }> {
  let longest = 0
  let last = performance.now()
  const look = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last - TICK_MS)
    last = now
  }
  const timer = setInterval(look, TICK_MS)
  try {
    const result = await task()
    // What stood still at the very end.
    await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    look()
    return { result, standstill: longest }
  } finally {
    clearInterval(timer)
  }
}
