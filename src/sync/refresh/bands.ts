import type { End } from './answer.ts'

/** Pages that are read equally often, as so many pages from the newest end, which is 1. */
export interface Band {
  from: number
  to: number
  /** How often each of its pages is read, in milliseconds. */
  period: number
}

export interface BandSetting {
  /** Pages of the list. */
  pages: number
  /** Of these, counted from the newest end, so many were just read by the refresh: no band reads them again. */
  read: number
  /** Milliseconds between two refreshes: no page is read more often. */
  interval: number
  /** Pages a minute that may be asked for. */
  budget: number
  /** Milliseconds between two full walks. */
  walkEvery: number
  /** False where new items appear at neither end: all pages are alike then. */
  hasNewestEnd: boolean
}

/** A band has so many times the pages of the one before it, and is read half as often. */
const DEEPER = 4
const RARER = 2

/** A band with a longer period than this part of the time between two walks is left to the walks: others need it more. */
const MOST_OF_A_WALK = 0.5

const MINUTE = 60_000

/**
 * Which older pages are read how often within the budget. Changes of a row become rarer with its age; the wrong rows are
 * fewest where the period grows with the square root of the time between changes, and so with that of the depth.
 */
export function planBands(setting: BandSetting): Band[] {
  const bands = setting.hasNewestEnd ? bandsOf(setting) : evenBand(setting.pages)
  const longest = setting.walkEvery * (setting.hasNewestEnd ? MOST_OF_A_WALK : 1)
  for (let count = bands.length; count > 0; count--) {
    const plan = withPeriods(bands.slice(0, count), setting)
    if ((plan.at(-1)?.period ?? 0) <= longest) return plan
  }
  return []
}

type Pages = Pick<Band, 'from' | 'to'>

/** A band that the refresh has read whole becomes empty, so that the others keep their index. */
function bandsOf({ pages, read }: Pick<BandSetting, 'pages' | 'read'>): Pages[] {
  const bands: Pages[] = []
  for (let before = 1; before < pages; before *= DEEPER) {
    const to = Math.min(before * DEEPER, pages)
    bands.push({ from: Math.min(Math.max(before, read), to) + 1, to })
  }
  return bands
}

function evenBand(pages: number): Pages[] {
  return pages > 0 ? [{ from: 1, to: pages }] : []
}

function withPeriods(bands: readonly Pages[], { interval, budget }: BandSetting): Band[] {
  const shortest = shortestPeriod(bands, interval, budget)
  return bands.map((band, depth) => ({ ...band, period: Math.max(interval, shortest * RARER ** depth) }))
}

/**
 * The period of the first band with which all of them use the budget, in milliseconds. Below the interval where the first
 * bands are read by every refresh: the deeper ones then share what these leave.
 */
function shortestPeriod(bands: readonly Pages[], interval: number, budget: number): number {
  let left = budget
  let weight = bands.reduce((sum, band, depth) => sum + sizeOf(band) / RARER ** depth, 0)
  for (const [depth, band] of bands.entries()) {
    const period = left > 0 ? (weight / left) * MINUTE : Number.POSITIVE_INFINITY
    if (period * RARER ** depth >= interval) return period
    left -= (sizeOf(band) * MINUTE) / interval
    weight -= sizeOf(band) / RARER ** depth
  }
  return 0
}

export function sizeOf({ from, to }: Pages): number {
  return to - from + 1
}

/** The page that stands so many pages from the newest end. */
export function pageAt(depth: number, newest: End | null, lastPage: number): number {
  return newest === 'last' ? lastPage - depth + 1 : depth
}
