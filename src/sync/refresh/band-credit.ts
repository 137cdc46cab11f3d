import { type Band, sizeOf } from './bands.ts'

/** How far a band has come. */
export interface BandState {
  /** The page read last, as so many pages from the newest end. */
  cursor: number
  /** Pages that it may ask for. */
  credit: number
}

/**
 * The bands with what they may ask for after another refresh.
 * @param elapsed Milliseconds since the last one; of a longer time no more than an interval counts.
 */
export function addCredit(
  states: readonly BandState[],
  plan: readonly Band[],
  elapsed: number,
  interval: number,
): BandState[] {
  const time = Math.max(0, Math.min(elapsed, interval))
  return plan.map((band, index) => {
    const { cursor, credit } = states[index] ?? { cursor: band.from, credit: 0 }
    const size = sizeOf(band)
    return { cursor, credit: size === 0 ? 0 : credit + (time / band.period) * size }
  })
}

/** An older page to ask for, and the bands after its answer is written. */
export interface OlderPage {
  depth: number
  /** Its place in the plan. */
  band: number
  next: BandState[]
}

/** The bands after it took more requests than one. */
export function payForRetries({ band, next }: OlderPage, requests: number): BandState[] {
  const retries = Math.max(0, requests - 1)
  return next.map((state, index) => (index === band ? { ...state, credit: state.credit - retries } : state))
}

/** The next page of the band that is owed most of its pages; null where no page is due. */
export function takeOlderPage(states: readonly BandState[], plan: readonly Band[]): OlderPage | null {
  const credit = states.reduce((sum, band) => sum + band.credit, 0)
  if (credit < 1 || plan.length === 0) return null
  const owed = plan.map((band, index) => (states[index]?.credit ?? 0) / Math.max(1, sizeOf(band)))
  const chosen = owed.indexOf(Math.max(...owed))
  const band = plan[chosen]
  const state = states[chosen]
  if (!band || !state) return null
  const depth = pageAfter(state.cursor, band)
  const taken = { cursor: depth, credit: state.credit - 1 }
  return { depth, band: chosen, next: states.map((other, index) => (index === chosen ? taken : other)) }
}

/** From old to new: rows drift to older pages, and a cursor that went with them would miss them. */
function pageAfter(cursor: number, { from, to }: Band): number {
  return cursor > from && cursor <= to + 1 ? cursor - 1 : to
}
