import { between, MINUTE_MS, MISSING, PER_PAGE } from './price.ts'

/**
 * How often rows of a list come and change, and how far its older pages are read. Rates are learned from what readings find. Each found row
 * replaces about 5 % of what was known, however long it took to come, so that a few rows change little.
 */
export interface Rates {
  /** At the newest end, a minute: rows that change, and those that are added MISSING times. */
  news: number
  /** Whether the newest end is known, from which pages are counted; if not, all pages are one band. */
  hasNewestEnd: boolean
  /** Since when the bands have been learned, and up to when their pages are owed. Epoch milliseconds. */
  since: number
  bandsAt: number
  bands: readonly Band[]
}

/** Pages that are read equally often, by their depth: 1 is the page at the newest end. */
export interface Band {
  from: number
  to: number
  /** Rows that are added to a page or change on it, a minute. */
  rate: number
  /** How many pages were owed so far, with a fraction for the next one, and how many of them were read: from old to new, over and over. */
  phase: number
  read: number
}

/** Found rows after which half of what was known is forgotten. */
const MEMORY = 20

/** Before anything is known, all rows of a list are assumed to be replaced within this many minutes. */
const USUAL_LIFE = 144_000

/**
 * Pages are owed for at most this time since the last visit, unless those of a visit take longer to come due, as where many quiet lists share
 * a budget. Minutes.
 */
const LONGEST = 60

/** Older pages are owed at most once a minute, and only once there are as many as are read together. */
const LEAST_VISIT = 1

/** @param rows The rows of a reading: one that changed twice is found once. */
export function learn(
  rate: number,
  found: number,
  elapsed: number,
  memory = MEMORY,
  rows = Number.POSITIVE_INFINITY,
): number {
  const x = (rate * elapsed) / rows
  const seen = x === 0 ? elapsed : (elapsed * -Math.expm1(-x)) / x
  return (memory + found) / (memory / rate + seen)
}

/** The rates for a list as it is now. `known`: null if nothing is. If its newest end has become known, what was learned of bands is forgotten. */
export function ratesOf(
  known: Rates | null,
  list: { pages: number; total: number | null; hasNewestEnd: boolean },
  now: number,
): Rates {
  const { pages, total, hasNewestEnd } = list
  if (known?.hasNewestEnd === hasNewestEnd && known.bands.at(-1)?.to === pages) return known
  const news = known?.news ?? (MISSING * Math.max(1, total ?? pages * PER_PAGE)) / USUAL_LIFE
  const before = known?.hasNewestEnd === hasNewestEnd ? known : { bands: [], bandsAt: now, since: now }
  const bands: Band[] = []
  for (let from = hasNewestEnd ? 2 : 1; from <= pages; from = hasNewestEnd ? 2 * from : pages + 1) {
    const to = hasNewestEnd ? Math.min(2 * from - 1, pages) : pages
    const usual =
      ((news / MISSING) * (hasNewestEnd ? 0.25 : 4)) / (hasNewestEnd ? Math.sqrt(from * to) : pages)
    const rate = before.bands.length === 0 ? usual : (bands.at(-1)?.rate ?? 2 * usual) / 2
    bands.push({ rate, phase: 0, read: 0, ...before.bands[bands.length], from, to })
  }
  return { news, hasNewestEnd, since: before.since, bandsAt: before.bandsAt, bands }
}

/** @param elapsed Milliseconds since it was read before. */
export function afterNewestEnd(
  rates: Rates,
  { added, changed }: { added: number; changed: number },
  elapsed: number,
): Rates {
  const news = learn(rates.news, MISSING * added + changed, Math.max(0, elapsed) / MINUTE_MS, 10 * MISSING)
  return { ...rates, news }
}

/** Minutes between two readings of a page of each band; infinite for those that are left to full walks. `pace`: in milliseconds. */
export function periodsOf(
  { bands }: Rates,
  price: number,
  pace: { every: number; walkEvery: number },
): number[] {
  return bands.map(({ rate }) => between(rate, price, pace.walkEvery / MINUTE_MS, pace.every / MINUTE_MS))
}

/** When older pages are owed next, epoch milliseconds. */
export function visitAt({ bandsAt, bands }: Rates, periods: readonly number[], chunk: number): number {
  return bandsAt + Math.max(LEAST_VISIT, minutesOf(chunk, bands, periods)) * MINUTE_MS
}

/** Minutes in which so many pages are owed. */
function minutesOf(chunk: number, bands: readonly Band[], periods: readonly number[]): number {
  return chunk / bands.reduce((sum, band, index) => sum + sizeOf(band) / (periods[index] ?? 0), 0)
}

/** The rates once the pages of the time since the last visit are owed. */
export function owe(rates: Rates, periods: readonly number[], chunk: number, now: number): Rates {
  const longest = Math.max(LONGEST, minutesOf(chunk, rates.bands, periods))
  const minutes = Math.min(longest, Math.max(0, now - rates.bandsAt) / MINUTE_MS)
  const bands = rates.bands.map((band, index) => {
    const size = sizeOf(band)
    const phase = band.phase + Math.min(size, (minutes * size) / (periods[index] ?? 0))
    return { ...band, phase: Math.min(phase, band.read + size + (band.phase % 1)) }
  })
  return { ...rates, bandsAt: now, bands }
}

/** The next page that is owed; null: none is. From the oldest page to the newest: rows drift to older pages, and a reader that moved the same way would miss them. */
export function nextOlder({ bands }: Rates): { band: number; depth: number } | null {
  const index = bands.findIndex(({ phase, read }) => Math.floor(phase) > read)
  const band = bands[index]
  return band ? { band: index, depth: band.to - (band.read % sizeOf(band)) } : null
}

/** The rates once a page of a band is read, `elapsed` minutes after it was read before. */
export function afterPage(rates: Rates, band: number, found: number, elapsed: number): Rates {
  const learned = (one: Band) => ({ ...one, rate: learn(one.rate, found, elapsed, MEMORY, PER_PAGE) })
  return { ...rates, bands: rates.bands.map((one, index) => (index === band ? learned(one) : one)) }
}

/** The rates once an owed page is no longer owed. */
export function notOwed(rates: Rates, band: number): Rates {
  const bands = rates.bands.map((one, index) => (index === band ? { ...one, read: one.read + 1 } : one))
  return { ...rates, bands }
}

function sizeOf({ from, to }: Band): number {
  return to - from + 1
}
