import { END_COST, MISSING, newestEvery, PER_PAGE, period } from '../../../src/sync/refresh/price.ts'
import { LIVES, type Stage } from './lives.ts'
import type { ListSetting } from './measure.ts'

const DAY = 1440
const MINUTE_MS = 60_000

/** Minutes: a list is read no more often. */
const EVERY = 5

interface KnownList {
  /** Rows that change on each page, a minute; the newest one first. */
  rates: readonly number[]
  arrivals: number
  news: number
}

/**
 * The wrong rows if the rates of each page were known, rows did not move from page to page, and nobody walked: of lists whose newest rows
 * come first, for so many requests a day.
 */
export function optimum(lists: readonly ListSetting[], requestsPerDay: number): number {
  const known = lists.map(knownList)
  let [low, high] = [Math.log(1e-3), Math.log(1e6)]
  for (let step = 0; step < 50; step++) {
    const middle = (low + high) / 2
    if (read(known, Math.exp(middle)).requests > requestsPerDay / DAY) low = middle
    else high = middle
  }
  return read(known, Math.exp(high)).wrong
}

function knownList({ life, rows, arrivals }: ListSetting): KnownList {
  const changedBy = (minutes: number) =>
    (LIVES[life] ?? []).reduce((sum, stage) => sum + stage.chance * partBy(stage, minutes), 0)
  const rates = Array.from(
    { length: Math.ceil(rows / PER_PAGE) },
    (_, page) =>
      arrivals * (changedBy((PER_PAGE * (page + 1)) / arrivals) - changedBy((PER_PAGE * page) / arrivals)),
  )
  return { rates, arrivals, news: MISSING * arrivals + (rates[0] ?? 0) }
}

function read(lists: readonly KnownList[], price: number): { requests: number; wrong: number } {
  const all = { requests: 0, wrong: 0 }
  for (const { rates, arrivals, news } of lists) {
    const shape = { every: EVERY * MINUTE_MS, turn: Number.POSITIVE_INFINITY, lastPage: rates.length }
    const newest = newestEvery(price, news, shape) / MINUTE_MS
    all.requests += END_COST / newest + arrivals / PER_PAGE
    all.wrong += (arrivals * newest) / 2
    for (const [page, rate] of rates.entries()) {
      if (rate < 1e-9) continue
      const every = page === 0 ? newest : Math.max(EVERY, period(rate, price))
      if (page > 0) all.requests += 1 / every
      all.wrong += wrongOn(rate, every)
    }
  }
  return all
}

/** Outdated rows of a page that is read each so many minutes. */
function wrongOn(rate: number, every: number): number {
  const x = (rate * every) / PER_PAGE
  if (x === Number.POSITIVE_INFINITY) return PER_PAGE
  return PER_PAGE * (x < 1e-4 ? x / 2 : 1 + Math.expm1(-x) / x)
}

/** The part of the items that have gone through a change by an age, of those that do. */
function partBy({ minutes, spread }: Stage, age: number): number {
  return age <= 0 ? 0 : normalPart(Math.log(age / minutes) / spread)
}

/** Of a normal distribution, by Abramowitz and Stegun, 7.1.26. */
function normalPart(z: number): number {
  const x = Math.abs(z) / Math.SQRT2
  const t = 1 / (1 + 0.3275911 * x)
  const rest = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592].reduce(
    (sum, one) => (sum + one) * t,
    0,
  )
  const half = (rest * Math.exp(-x * x)) / 2
  return z < 0 ? half : 1 - half
}
