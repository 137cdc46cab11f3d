/** Answers a second, of all clients together. */
const PER_SECOND = 50

/**
 * Returns a function that says how long (milliseconds) a request waits for its answer: as many requests as a browser and a
 * few scrapers send wait for nothing, and a flood is answered as slowly as PER_SECOND allows. `now` is in epoch milliseconds.
 */
export function createPace(now: () => number): () => number {
  const step = 1000 / PER_SECOND
  // The time of the last answer that was given away.
  let last = 0
  return () => {
    const time = now()
    // A clock that was set back must not make everybody wait.
    if (last > time + LONGEST_MS) last = time
    last = Math.max(last + step, time - BURST * step)
    return Math.max(0, last - time)
  }
}

/** So many answers need not be spread. */
const BURST = 50

/** No queue is longer: there are only so many connections, and requests on each. */
const LONGEST_MS = 300_000
