/** A line of the log once a list and hour. */
const HOUR_MS = 3_600_000

/**
 * Returns a function that is called with the name of a list whose time came while it still ran. It returns how often that came
 * since the last line about this list, this one included; null: a line came less than an hour ago, so this one is only counted.
 */
export function createSkips(now: () => number): (name: string) => number | null {
  const told = new Map<string, { at: number; since: number }>()
  return (name) => {
    const last = told.get(name)
    const skipped = (last?.since ?? 0) + 1
    const at = now()
    // A clock that was set back does not silence it.
    if (last && at >= last.at && at - last.at < HOUR_MS) {
      last.since = skipped
      return null
    }
    told.set(name, { at, since: 0 })
    return skipped
  }
}
