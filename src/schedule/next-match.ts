/** Whether a moment (epoch milliseconds) lies in a part of time in which a schedule may fire, from coarse to fine. */
export interface Matchers {
  /** Whether the calendar day on which this moment lies in UTC is a day of the schedule, in whatever zone. */
  day(time: number): boolean
  /** Whether the moment's local day and hour are of the schedule; so for `minute` and `second`. */
  hour(time: number): boolean
  minute(time: number): boolean
  second(time: number): boolean
}

const SECOND = 1000
const MINUTE = 60 * SECOND
// The clocks of all zones differ from UTC by a multiple of this, before and after every change of theirs: a local hour
// neither begins nor ends within one.
const QUARTER = 15 * MINUTE
const DAY = 24 * 60 * MINUTE

/**
 * The first whole second in (`after`, `until`] that the schedule matches, or null; epoch milliseconds. What cannot match
 * is stepped over in the longest strides that are safe, so that a year without a match costs some hundred questions.
 */
export function nextMatch(matches: Matchers, after: number, until: number): number | null {
  let time = startOfNext(SECOND, after)
  while (time <= until) {
    if (!isDayNear(matches, time)) time = startOfNext(DAY, time)
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

/** The local day of a moment is the one in UTC, the one before, or the one after. */
function isDayNear(matches: Matchers, time: number): boolean {
  return matches.day(time) || matches.day(time - DAY) || matches.day(time + DAY)
}
