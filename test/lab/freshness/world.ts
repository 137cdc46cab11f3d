import type { RefreshItem } from '../../../src/sync/refresh/ends.ts'
import type { Random } from '../../simulation/random.ts'

// A list that lives: items come, change as their life says, and go; and a mirror of it, at first without a fault. Times are minutes.

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
  batch?: { day: number; part: number }
}

/** An item, and its row as a program that reads pages knows it. */
interface Item {
  id: number
  born: number
  isListed: boolean
  /** Epoch milliseconds; null: it was never read. */
  seen: { firstAt: number; changedAt: number } | null
  /** When it changed since it was read. */
  changes: number[]
}

/** `item` null: one goes. */
interface Happening {
  time: number
  item: Item | null
}

export class World {
  /** From when an item came until it was read, and from each change. */
  newAges: number[] = []
  changedAges: number[] = []
  readonly #order: WorldSetting['order']
  readonly #removals: WorldSetting['removals']
  readonly #random: Random
  /** The newest last, but for a list in no order. Those before `start` are gone. */
  readonly #items: Item[] = []
  #start = 0
  /** By the minute in which it happens: sorting all of it at once would take most of the time. */
  readonly #happenings: Happening[][]
  #minute = 0
  #next = 0
  readonly #missing = new Set<Item>()
  /** Listed rows that are missing or outdated now, and how many row-minutes of them there were until `last`. */
  #wrong = 0
  #area = 0
  #last = 0

  constructor(setting: WorldSetting, random: Random) {
    const { rows, arrivals, order, removals } = setting
    const births: number[] = []
    for (let time = 0; births.length < rows; births.push(time)) time -= gap(arrivals, random)
    const all = [...births.toReversed(), ...pointsOfTime(setting, random)].map((born, id): Item => {
      const isListed = id < rows
      return { id, born, isListed, seen: isListed ? { firstAt: 0, changedAt: 0 } : null, changes: [] }
    })
    this.#order = order
    this.#removals = removals
    this.#random = random.fork()
    for (const item of all.slice(0, rows)) this.#add(item)
    this.#happenings = plan(setting, all, random)
  }

  get total(): number {
    return this.#items.length - this.#start
  }

  get lastPage(): number {
    return Math.max(1, Math.ceil(this.total / PER_PAGE))
  }

  /** Lets everything up to this minute happen. */
  passTo(until: number): void {
    for (; this.#minute < this.#happenings.length; this.#minute++, this.#next = 0) {
      const inMinute = this.#happenings[this.#minute] ?? []
      if (this.#next === 0) inMinute.sort((a, b) => a.time - b.time)
      for (; this.#next < inMinute.length; this.#next++) {
        const happening = inMinute[this.#next]
        if (!happening || happening.time > until) return
        this.#happen(happening)
      }
      if (this.#minute + 1 > until) return
    }
  }

  /** Reads a page and writes it. `at`: the time of the answer, in epoch milliseconds. */
  read(page: number, time: number, at: number) {
    const { total, lastPage } = this
    const shown = this.#pageAt(page)
    const added = shown.filter(({ seen }) => seen === null).length
    const changed = shown.filter(({ seen, changes }) => seen && changes.length > 0).length
    this.#count(time, -added - changed)
    return { total, lastPage, items: shown.map((item) => this.#readItem(item, time, at)), added, changed }
  }

  /** Items that came before this minute, stand in the list and were never read; without those that changed since then. */
  missingOf(until: number): number {
    return [...this.#missing].filter(
      ({ born, changes }) => born < until && !changes.some((at) => at >= until),
    ).length
  }

  /** Measures from this minute on. */
  measureFrom(time: number): void {
    this.#count(time, 0)
    this.#area = 0
    this.newAges = []
    this.changedAges = []
  }

  /** Wrong rows at a random moment of so many minutes until then. */
  wrongRows(until: number, minutes: number): number {
    this.#count(until, 0)
    return this.#area / minutes
  }

  #count(time: number, more: number): void {
    this.#area += this.#wrong * (time - this.#last)
    this.#last = time
    this.#wrong += more
  }

  #happen({ item, time }: Happening): void {
    if (item === null) {
      const gone = this.#remove()
      if (!gone) return
      this.#count(time, isWrong(gone) ? -1 : 0)
      gone.isListed = false
      this.#missing.delete(gone)
    } else if (item.isListed) {
      // Nothing stands elsewhere afterwards, unless the list is sorted by update.
      if (this.#order === 'by update')
        this.#items.push(...this.#items.splice(this.#items.indexOf(item, this.#start), 1))
      this.#count(time, isWrong(item) ? 0 : 1)
      item.changes.push(time)
    } else if (time === item.born) {
      item.isListed = true
      this.#add(item)
      this.#count(time, 1)
      this.#missing.add(item)
    }
  }

  #add(item: Item): void {
    if (this.#order === 'random') this.#items.splice(this.#random.whole(0, this.#items.length), 0, item)
    else this.#items.push(item)
  }

  /** Takes an item away; none of an empty list. The oldest one is only left behind: to move all others would take most of the time. */
  #remove(): Item | undefined {
    if (this.total === 0) return undefined
    const isOrdered = this.#order !== 'random'
    if (isOrdered && this.#removals === 'oldest') return this.#items[this.#start++]
    const first = isOrdered ? Math.max(0, this.#items.length - NEWEST) : 0
    return this.#items.splice(this.#random.whole(first, this.#items.length - 1), 1)[0]
  }

  #pageAt(page: number): readonly Item[] {
    const start = Math.min((page - 1) * PER_PAGE, this.total)
    const end = Math.min(start + PER_PAGE, this.total)
    const { length } = this.#items
    return this.#order === 'first'
      ? this.#items.slice(length - end, length - start).toReversed()
      : this.#items.slice(this.#start + start, this.#start + end)
  }

  #readItem(item: Item, time: number, at: number): RefreshItem<number> {
    const { id, born, seen, changes } = item
    if (seen === null) this.newAges.push(time - born)
    for (const changed of changes) this.changedAges.push(time - changed)
    item.seen = {
      firstAt: seen?.firstAt ?? at,
      changedAt: seen && changes.length === 0 ? seen.changedAt : at,
    }
    item.changes = []
    this.#missing.delete(item)
    return { id, seen: item.seen }
  }
}

const isWrong = ({ seen, changes }: Item) => seen === null || changes.length > 0

function pointsOfTime({ arrivals, minutes }: WorldSetting, random: Random): number[] {
  const points: number[] = []
  for (let time = gap(arrivals, random); time < minutes; time += gap(arrivals, random)) points.push(time)
  return points
}

function plan(setting: WorldSetting, items: readonly Item[], random: Random): Happening[][] {
  const { life, minutes, batch } = setting
  const happenings: Happening[][] = Array.from({ length: Math.ceil(minutes) }, () => [])
  const note = (time: number, item: Item | null) => happenings[Math.floor(time)]?.push({ time, item })
  for (const item of items) if (!item.isListed) note(item.born, item)
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

/** A change that an item may go through: how likely, so many minutes after it came, log-normal around the median, and the spread of the logarithm. */
type Stage = readonly [chance: number, minutes: number, spread: number]

/** How items change after they came. `apart`: so nearly at two ages that all else stands still. */
const LIVES: Record<string, readonly Stage[]> = {
  orders: [
    [0.9, 5, 0.8],
    [0.9, HOUR, 0.8],
    [0.9, DAY, 0.8],
    [0.9, 3 * DAY, 0.8],
    [0.15, 20 * DAY, 1.5],
  ],
  fast: [
    [1, 2, 1],
    [1, 20, 1],
  ],
  slow: [
    [1, 2 * DAY, 1],
    [1, 14 * DAY, 1],
    [1, 60 * DAY, 1],
  ],
  apart: [
    [1, HOUR / 2, 0.25],
    [1, 10 * DAY, 0.25],
  ],
}

/** When an item that came at this minute changes. */
function changesOf(life: string, came: number, random: Random): number[] {
  const stages = LIVES[life] ?? []
  return stages
    .filter(([chance]) => random.chance(chance))
    .map(([, minutes, spread]) => came + minutes * Math.exp(spread * normal(random)))
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next())
}
