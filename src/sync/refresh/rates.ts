import type { End } from './answer.ts'
import { between, MISSING } from './price.ts'

/**
 * How often rows of a list come and change, and how far older pages are read. Rates are learned from what readings find, and forget by
 * found rows, not by days: one row moves a rate by 5 %, so small numbers mislead nobody.
 */
export interface Rates {
  /** At the newest end, a minute: rows that change, and those that are added MISSING times. */
  news: number
  /** Whether pages are counted from the end where new items appear; else all of them are one band. */
  hasNewestEnd: boolean
  /** When pages were last owed, epoch milliseconds. */
  bandsAt: number
  bands: readonly Band[]
}

/** Pages that are read equally often. */
export interface Band {
  /** Rows that are added to a page or change on it, a minute. */
  rate: number
  /** Pages that were owed so far, with the part of the next one, and how many of them are read. From old to new, over and over. */
  phase: number
  read: number
}

/** As so many pages from the newest end, which is 1. */
export interface Depths {
  from: number
  to: number
}

/** What is known of a list beside its rates. Milliseconds. */
export interface ListTimes {
  every: number
  /** Between two full walks. */
  walkEvery: number
  /** When the last complete one began, and how long it took. */
  walkAt: number
  walkTook: number
}

/** Found rows after which half of what was known is forgotten. */
const MEMORY = 20

/** All rows of a list are taken to be new within so many minutes, before anything is known. */
const USUAL_LIFE = 144_000

/** Of a longer time no more pages are owed. Minutes. */
const LONGEST = 60

/** No more often than once a minute, and only for as many pages as are read together. */
const LEAST_VISIT = 1

const PER_PAGE = 25
const MINUTE = 60_000

/** @param rows Of a reading, in which a row that changed twice is found once. */
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

/** The bands of a list: 2 to 3, 4 to 7, 8 to 15, ...; without a newest end one, of all pages. */
export function depthsOf(pages: number, hasNewestEnd: boolean): Depths[] {
  if (!hasNewestEnd) return [{ from: 1, to: pages }]
  const depths: Depths[] = []
  for (let from = 2; from <= pages; from *= 2) depths.push({ from, to: Math.min(2 * from - 1, pages) })
  return depths
}

/** The rates of a list as it is now. Null: nothing is known. What was learned of other bands is forgotten. */
export function ratesOf(
  known: Rates | null,
  list: { pages: number; total: number | null; hasNewestEnd: boolean },
  now: number,
): Rates {
  const { pages, total, hasNewestEnd } = list
  const news = known?.news ?? (MISSING * Math.max(1, total ?? pages * PER_PAGE)) / USUAL_LIFE
  const isSame = known?.hasNewestEnd === hasNewestEnd
  const bands: Band[] = isSame ? [...known.bands] : []
  const isNew = bands.length === 0
  const depths = depthsOf(pages, hasNewestEnd)
  for (const depth of depths.slice(bands.length)) {
    const first = { rate: usualRate(news / MISSING, depth, hasNewestEnd), phase: 0, read: 0 }
    bands.push(isNew ? first : { ...first, rate: (bands.at(-1)?.rate ?? 2 * first.rate) / 2 })
  }
  return { news, hasNewestEnd, bandsAt: isSame ? known.bandsAt : now, bands: bands.slice(0, depths.length) }
}

function usualRate(added: number, { from, to }: Depths, hasNewestEnd: boolean): number {
  return hasNewestEnd ? (0.25 * added) / Math.sqrt(from * to) : (4 * added) / to
}

/** @param elapsed Milliseconds since it was read before. */
export function afterNewestEnd(
  rates: Rates,
  { added, changed }: { added: number; changed: number },
  elapsed: number,
): Rates {
  const news = learn(rates.news, MISSING * added + changed, Math.max(0, elapsed) / MINUTE, 10 * MISSING)
  return { ...rates, news }
}

/** Minutes between two readings of a page of each band; infinite for those that are left to full walks. */
export function periodsOf({ bands }: Rates, price: number, { every, walkEvery }: ListTimes): number[] {
  return bands.map(({ rate }) => between(rate, price, walkEvery / MINUTE, every / MINUTE))
}

/** When older pages are owed next, epoch milliseconds. */
export function visitAt(
  { bandsAt }: Rates,
  depths: readonly Depths[],
  periods: readonly number[],
  chunk: number,
): number {
  const perMinute = depths.reduce((sum, depth, band) => sum + sizeOf(depth) / (periods[band] ?? 0), 0)
  return bandsAt + Math.max(LEAST_VISIT, chunk / perMinute) * MINUTE
}

/** The rates once the pages of the time since the last visit are owed. */
export function owe(rates: Rates, depths: readonly Depths[], periods: readonly number[], now: number): Rates {
  const minutes = Math.min(LONGEST, Math.max(0, now - rates.bandsAt) / MINUTE)
  const bands = rates.bands.map((band, index) => {
    const size = sizeOf(depths[index])
    const most = band.read + size + (band.phase % 1)
    const phase = band.phase + Math.min(size, (minutes * size) / (periods[index] ?? Number.POSITIVE_INFINITY))
    return { ...band, phase: Math.min(phase, most) }
  })
  return { ...rates, bandsAt: now, bands }
}

/** An older page that is owed. */
export interface OlderPage {
  band: number
  depth: number
}

/** The next page that is owed; null: none is. From old to new: rows drift to older pages, and who went with them would miss them. */
export function nextOlder({ bands }: Rates, depths: readonly Depths[]): OlderPage | null {
  const band = bands.findIndex(({ phase, read }) => Math.floor(phase) > read)
  const [at, depth] = [bands[band], depths[band]]
  return at && depth ? { band, depth: depth.to - (at.read % sizeOf(depth)) } : null
}

/** The rates once an owed page is read. `found`: the rows that it added or changed; null: it was not read. `elapsed`: minutes. */
export function afterOlder(rates: Rates, { band }: OlderPage, found: number | null, elapsed: number): Rates {
  const learned = found === null ? rates : afterWalkedPage(rates, band, found, elapsed)
  const bands = learned.bands.map((one, index) => (index === band ? { ...one, read: one.read + 1 } : one))
  return { ...learned, bands }
}

/** Minutes since a page was read: its period, or less if a full walk has read it since. */
export function elapsedAt(
  page: number,
  pages: number,
  period: number,
  { walkAt, walkTook }: ListTimes,
  now: number,
): number {
  const walked = (now - walkAt - (walkTook * page) / Math.max(1, pages)) / MINUTE
  return Math.max(0, Math.min(period, walked))
}

/** The rates once a page of a band is read, so many minutes after it was before. */
export function afterWalkedPage(rates: Rates, band: number, found: number, elapsed: number): Rates {
  const bands = rates.bands.map((one, index) =>
    index === band ? { ...one, rate: learn(one.rate, found, elapsed, MEMORY, PER_PAGE) } : one,
  )
  return { ...rates, bands }
}

function sizeOf(depths: Depths | undefined): number {
  return depths ? depths.to - depths.from + 1 : 0
}

/** The page that stands so many pages from the newest end, or the depth of that page. */
export function pageAt(depth: number, newest: End | null, lastPage: number): number {
  return newest === 'last' ? lastPage - depth + 1 : depth
}
