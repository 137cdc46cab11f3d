/** Whether a schedule may fire in the day, hour, minute or second of a moment (epoch milliseconds). */
export interface Matchers {
  /** Whether the moment's day in UTC is a day of the schedule, in whatever zone. */
  day(time: number): boolean
  /** Whether the moment's local day and hour are in the schedule; likewise `minute` and `second`. */
  hour(time: number): boolean
  minute(time: number): boolean
  second(time: number): boolean
  /** False if no clock of any zone shows a minute of the schedule; answered at once, since all others ask a calendar. */
  mayBeMinute(time: number): boolean
}

const SECOND = 1000
const MINUTE = 60 * SECOND
// All zones differ from UTC by a multiple of this, before and after each change of their clocks: a local hour neither
// begins nor ends within one.
const QUARTER = 15 * MINUTE
const DAY = 24 * 60 * MINUTE

/**
 * Returns the first whole second in (`after`, `until`] that the schedule matches, or null; epoch milliseconds. The
 * search takes the longest steps that are safe: a year without a match takes some hundred of them.
 */
export function nextMatch(matches: Matchers, after: number, until: number): number | null {
  let time = startOfNext(SECOND, after)
  while (time <= until) {
    if (!matches.mayBeMinute(time)) time = startOfNext(MINUTE, time)
    else if (!isDayNear(matches, time)) time = startOfNext(DAY, time)
    else if (!matches.hour(time)) time = startOfNext(QUARTER, time)
    else if (!matches.minute(time)) time = startOfNext(MINUTE, time)
    else if (!matches.second(time)) time = startOfNext(SECOND, time)
    else return time
  }
  return null
}

function startOfNext(unit: number, time: number): number {
  return (Math.floor(time / unit) + 1) * unit
}

/** A moment's local day is its day in UTC, the one before or the one after. */
function isDayNear(matches: Matchers, time: number): boolean {
  return matches.day(time) || matches.day(time - DAY) || matches.day(time + DAY)
}
