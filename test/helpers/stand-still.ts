import fs from 'node:fs'

/** How often the timer would like to run. */
const TICK_MS = 25

/**
 * Runs the task, and measures for how long the event loop of this process stood still meanwhile, at most, apart from time in
 * which the machine was busy with others. Milliseconds.
 */
export async function longestStandstill<T>(
  task: () => Promise<T>,
): Promise<{ result: T; standstill: number }> {
  let longest = 0
  let last = elapsed()
  const look = () => {
    const now = elapsed()
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

/** Milliseconds without those in which the main thread was ready to run and had no core; only Linux tells of these. */
function elapsed(): number {
  const file = '/proc/self/schedstat'
  const waited = fs.existsSync(file) ? Number(fs.readFileSync(file, 'utf8').split(' ')[1]) : 0
  return performance.now() - waited / 1e6
}
