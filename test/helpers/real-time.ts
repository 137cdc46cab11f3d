/** Runs `task` after so many real milliseconds, unless the function that is returned is called before. */
export function afterRealTime(ms: number, task: () => void): () => void {
  const timer = setTimeout(task, ms)
  timer.unref()
  return () => clearTimeout(timer)
}
