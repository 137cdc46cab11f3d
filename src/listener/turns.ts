/**
 * Returns a function that resolves when a request may be answered: one after another, each as late as `waitMs` says. A request
 * whose client is gone by its turn takes none, or clients that ask and leave would keep all others waiting for minutes.
 */
export function createTurns(
  waitMs: () => number,
  sleep: (ms: number) => Promise<void>,
): (isGone: () => boolean) => Promise<void> {
  let last = Promise.resolve()
  return (isGone) => {
    last = last.then(async () => {
      if (isGone()) return
      const wait = waitMs()
      if (wait > 0) await sleep(wait)
    })
    return last
  }
}
