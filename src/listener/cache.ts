/** At least so long an answer is used again. Milliseconds. */
const LEAST_MS = 1000

/** An answer that takes long to compute is used so many times as long: the sync gets 95 % of the time at least. */
const TIMES = 20

/**
 * Returns a function that computes at most so often, since reading the mirror blocks the event loop. An error is kept, too,
 * for as long as it took to come.
 * `now` is in epoch milliseconds.
 */
export function cached<T>(compute: () => T | Promise<T>, now: () => number, times = TIMES): () => Promise<T> {
  let kept: { answer: Promise<T>; from: number; until: number } | null = null
  return () => {
    const begun = now()
    // A clock that was set back must not keep an answer for ever.
    if (kept && begun >= kept.from && begun < kept.until) return kept.answer
    const answer = new Promise<T>((resolve) => resolve(compute()))
    const entry = { answer, from: begun, until: Number.POSITIVE_INFINITY }
    kept = entry
    const keep = (so: number) => () => {
      const ended = now()
      entry.until = ended + Math.max(LEAST_MS, so * (ended - begun))
    }
    // What failed after a long wait for a server may succeed at once when that is back.
    answer.then(keep(times), keep(1))
    return answer
  }
}
