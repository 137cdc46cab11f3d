import type { RefreshItem } from '../../../src/sync/refresh/ends.ts'
import type { Random } from '../../simulation/random.ts'

const HOUR = 60
const DAY = 24 * HOUR
const PER_PAGE = 25

/** Of so many items one goes, where the newest ones go. */
const NEWEST = 100

export interface WorldSetting {
  /** Where new items appear; `by update` puts changed ones there, too: at the end of the list. */
  order: 'first' | 'last' | 'by update' | 'random'
  /** Which items go; in a list without an order it is any. */
  removals: 'oldest' | 'newest'
  life: string
  rows: number
  /** Items that come a minute, and as many go. */
  arrivals: number
  /** How long it lives. */
  minutes: number
  /** So many days after the start, and each week then, a part of the rows changes at once. */
  batch?: { day: number; part: number } | undefined
}

/** What was measured from a moment on. Times are minutes. */
export interface Measured {
  /** From when an item came until it was read, and from each change. */
  newAges: number[]
  changedAges: number[]
  /** Listed rows that are missing or outdated, at a random moment. */
  wrongRows: number
}

/** An item, and its row as a program that reads pages knows it. */
interface Item {
  id: number
  /** When it came, in minutes. */
  born: number
  isListed: boolean
  /** Epoch milliseconds; null: it was never read. */
  seen: { firstAt: number; changedAt: number } | null
  /** When it changed since it was read, in minutes. */
  changes: number[]
}

interface Happening {
  time: number
  /** Null: an item goes. */
  item: Item | null
}

export type World = ReturnType<typeof createWorld>

/** A list that lives: items come, change as their life says, and go; and a mirror of it, at first without a fault. Times are minutes. */
export function createWorld(setting: WorldSetting, random: Random) {
  const before = birthsBefore(setting, random)
  const items = [...before, ...pointsOfTime(setting, random)].map((born, id): Item => {
    const isOld = id < before.length
    return { id, born, isListed: isOld, seen: isOld ? { firstAt: 0, changedAt: 0 } : null, changes: [] }
  })
  const list = createList(setting, random.fork())
  for (const item of items) if (item.isListed) list.add(item)
  const happenings = plan(setting, items, before.length, random)
  const missing = new Set<Item>()
  let [minute, next] = [0, 0]
  let measured = { newAges: [] as number[], changedAges: [] as number[] }
  /** Wrong rows now, and over time. */
  let [wrong, area, last, from] = [0, 0, 0, 0]

  const isWrong = ({ seen, changes }: Item) => seen === null || changes.length > 0

  function pass(time: number): void {
    area += wrong * (time - last)
    last = time
  }

  function happen({ item, time }: Happening): void {
    if (item === null) {
      const gone = list.remove()
      if (!gone) return
      pass(time)
      if (isWrong(gone)) wrong--
      gone.isListed = false
      missing.delete(gone)
    } else if (item.isListed) {
      list.change(item)
      pass(time)
      if (!isWrong(item)) wrong++
      item.changes.push(time)
    } else if (time === item.born) {
      item.isListed = true
      list.add(item)
      pass(time)
      missing.add(item)
      wrong++
    }
  }

  function read(item: Item, time: number, at: number): RefreshItem<number> {
    if (isWrong(item)) wrong--
    if (item.seen === null) measured.newAges.push(time - item.born)
    measured.changedAges.push(...item.changes.map((changed) => time - changed))
    const changedAt = item.seen && item.changes.length === 0 ? item.seen.changedAt : at
    item.seen = { firstAt: item.seen?.firstAt ?? at, changedAt }
    item.changes = []
    missing.delete(item)
    return { id: item.id, seen: item.seen }
  }

  return {
    /** Lets everything up to this minute happen. */
    passTo(until: number): void {
      for (; minute < happenings.length; minute++, next = 0) {
        const inMinute = happenings[minute] ?? []
        if (next === 0) inMinute.sort((a, b) => a.time - b.time)
        for (; next < inMinute.length; next++) {
          const happening = inMinute[next]
          if (!happening || happening.time > until) return
          happen(happening)
        }
        if (minute + 1 > until) return
      }
    },
    size: list.size,
    /** Reads a page and writes it. `at`: the time of the answer, in epoch milliseconds. */
    read(page: number, time: number, at: number) {
      pass(time)
      const shown = list.pageAt(page)
      const added = shown.filter(({ seen }) => seen === null).length
      const changed = shown.filter(({ seen, changes }) => seen && changes.length > 0).length
      return { ...list.size(), items: shown.map((item) => read(item, time, at)), added, changed }
    },
    /** Items that came before this minute, stand in the list and were never read; without those that changed since then. */
    missingOf: (until: number) =>
      [...missing].filter(({ born, changes }) => born < until && !changes.some((at) => at >= until)).length,
    /** Measures from this minute on. */
    measureFrom(time: number): void {
      pass(time)
      measured = { newAges: [], changedAges: [] }
      area = 0
      from = time
    },
    measured(until: number): Measured {
      pass(until)
      return { ...measured, wrongRows: area / (until - from) }
    },
  }
}

function createList({ order, removals }: WorldSetting, random: Random) {
  /** The newest last, but for a list in no order. */
  const items: Item[] = []

  return {
    add(item: Item): void {
      if (order === 'random') items.splice(random.whole(0, items.length), 0, item)
      else items.push(item)
    },
    /** Nothing stands elsewhere afterwards, unless the list is sorted by update. */
    change(item: Item): void {
      if (order === 'by update') items.push(...items.splice(items.indexOf(item), 1))
    },
    /** Takes an item away; none of an empty list. */
    remove(): Item | undefined {
      if (items.length === 0) return undefined
      const first = order === 'random' ? 0 : Math.max(0, items.length - NEWEST)
      const isAny = order === 'random' || removals === 'newest'
      return items.splice(isAny ? random.whole(first, items.length - 1) : 0, 1)[0]
    },
    size: () => ({ total: items.length, lastPage: Math.max(1, Math.ceil(items.length / PER_PAGE)) }),
    pageAt(page: number): readonly Item[] {
      const total = items.length
      const start = Math.min((page - 1) * PER_PAGE, total)
      const end = Math.min(start + PER_PAGE, total)
      return order === 'first'
        ? items.slice(total - end, total - start).toReversed()
        : items.slice(start, end)
    },
  }
}

/** The oldest first. */
function birthsBefore({ rows, arrivals }: WorldSetting, random: Random): number[] {
  const births: number[] = []
  for (let time = 0; births.length < rows; ) {
    time -= gap(arrivals, random)
    births.push(time)
  }
  return births.toReversed()
}

function pointsOfTime({ arrivals, minutes }: WorldSetting, random: Random): number[] {
  const points: number[] = []
  for (let time = gap(arrivals, random); time < minutes; time += gap(arrivals, random)) points.push(time)
  return points
}

/** What happens, by the minute in which it does: sorting all of it at once would take most of the time. */
function plan(setting: WorldSetting, items: readonly Item[], before: number, random: Random): Happening[][] {
  const { life, minutes, batch } = setting
  const happenings: Happening[][] = Array.from({ length: Math.ceil(minutes) }, () => [])
  const note = (time: number, item: Item | null) => happenings[Math.floor(time)]?.push({ time, item })
  for (const item of items.slice(before)) note(item.born, item)
  for (const time of pointsOfTime(setting, random)) note(time, null)
  for (const item of items)
    for (const time of changesOf(life, item.born, random)) if (time > 0) note(time, item)
  for (let time = (batch?.day ?? Number.POSITIVE_INFINITY) * DAY; time < minutes; time += 7 * DAY)
    for (const item of items) if (item.born < time && random.chance(batch?.part ?? 0)) note(time, item)
  return happenings
}

function gap(perMinute: number, random: Random): number {
  return -Math.log(1 - random.next()) / perMinute
}

/** A change that an item may go through: how likely, and so many minutes after it came, log-normal around the median. */
interface Stage {
  chance: number
  minutes: number
  /** Of the logarithm. */
  spread: number
}

/** How items change after they came. `apart`: so nearly at two ages that all else stands still. */
const LIVES: Record<string, readonly Stage[]> = {
  orders: [
    { chance: 0.9, minutes: 5, spread: 0.8 },
    { chance: 0.9, minutes: HOUR, spread: 0.8 },
    { chance: 0.9, minutes: DAY, spread: 0.8 },
    { chance: 0.9, minutes: 3 * DAY, spread: 0.8 },
    { chance: 0.15, minutes: 20 * DAY, spread: 1.5 },
  ],
  fast: [
    { chance: 1, minutes: 2, spread: 1 },
    { chance: 1, minutes: 20, spread: 1 },
  ],
  slow: [
    { chance: 1, minutes: 2 * DAY, spread: 1 },
    { chance: 1, minutes: 14 * DAY, spread: 1 },
    { chance: 1, minutes: 60 * DAY, spread: 1 },
  ],
  apart: [
    { chance: 1, minutes: 0.5 * HOUR, spread: 0.25 },
    { chance: 1, minutes: 10 * DAY, spread: 0.25 },
  ],
}

/** When an item that came at this minute changes, in minutes. */
function changesOf(life: string, came: number, random: Random): number[] {
  const stages = LIVES[life]
  if (!stages) throw new Error(`there is no life ${life}; there are: ${Object.keys(LIVES).join(', ')}`)
  return stages
    .filter(({ chance }) => random.chance(chance))
    .map(({ minutes, spread }) => came + minutes * Math.exp(spread * normal(random)))
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next())
}
