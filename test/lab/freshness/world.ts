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
  life: keyof typeof LIVES
  rows: number
  /** Items that come a minute, and as many go. */
  arrivals: number
}

/** A change that an item may go through: how likely, so many minutes after it came, log-normal around the median, and the spread of the logarithm. */
type Stage = readonly [chance: number, minutes: number, spread: number]

/** How items change after they came. */
const LIVES = {
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
} satisfies Record<string, Stage[]>

/** An item, and its row as a program that reads pages knows it. */
interface Item {
  id: number
  born: number
  isListed: boolean
  /** Epoch milliseconds; null: it was never read. */
  seen: { firstAt: number; changedAt: number } | null
  /** When it changed last since it was read; null: it did not. */
  changed: number | null
}

export class World {
  /** From when an item came until it was read. */
  newAges: number[] = []
  /** Items that were ever read first. */
  rowsAdded = 0
  readonly #setting: WorldSetting
  readonly #random: Random
  /** The newest last, but for a list in no order. */
  readonly #items: Item[] = []
  /** What happens, in its order, to an item; null: one goes. */
  readonly #happenings: { time: number; item: Item | null }[] = []
  #next = 0
  /** Listed rows that are missing or outdated now, and how many row-minutes of them there were until `last`. */
  #wrong = 0
  #area = 0
  #last = 0

  constructor(setting: WorldSetting, minutes: number, random: Random) {
    const { rows, life, arrivals } = setting
    const births: number[] = []
    for (let time = 0; births.length < rows; births.push(time)) time -= gap(arrivals, random)
    const all = [...births.toReversed(), ...pointsOfTime(arrivals, minutes, random)].map((born, id): Item => {
      const isListed = id < rows
      return { id, born, isListed, seen: isListed ? { firstAt: 0, changedAt: 0 } : null, changed: null }
    })
    this.#setting = setting
    this.#random = random.fork()
    for (const item of all.slice(0, rows)) this.#add(item)
    const plan = (time: number, item: Item | null) => {
      if (time > 0 && time < minutes) this.#happenings.push({ time, item })
    }
    for (const item of all.slice(rows)) plan(item.born, item)
    for (const time of pointsOfTime(arrivals, minutes, random)) plan(time, null)
    for (const item of all) for (const age of changesOf(LIVES[life], random)) plan(item.born + age, item)
    this.#happenings.sort((a, b) => a.time - b.time)
  }

  get total(): number {
    return this.#items.length
  }

  get lastPage(): number {
    return Math.max(1, Math.ceil(this.total / PER_PAGE))
  }

  /** Lets everything up to this minute happen. */
  passTo(until: number): void {
    for (; ; this.#next++) {
      const next = this.#happenings[this.#next]
      if (!next || next.time > until) return
      const { time, item } = next
      if (item === null) this.#remove(time)
      else if (item.isListed) this.#change(time, item)
      else if (time === item.born) this.#appear(time, item)
    }
  }

  /** Reads a page and writes it. `at`: the time of the answer, in epoch milliseconds. */
  read(page: number, time: number, at: number) {
    const { total, lastPage } = this
    const listed = this.#pageAt(page)
    const added = listed.filter(({ seen }) => seen === null).length
    const changed = listed.filter(isWrong).length - added
    this.#count(time, -added - changed)
    this.rowsAdded += added
    const items = listed.map((item): RefreshItem<number> => {
      const { id, born, seen } = item
      if (seen === null) this.newAges.push(time - born)
      if (isWrong(item)) item.seen = { firstAt: seen?.firstAt ?? at, changedAt: at }
      item.changed = null
      return { id, seen: item.seen }
    })
    return { total, lastPage, items, added, changed, rowsAdded: this.rowsAdded }
  }

  /** Items that came before this minute, stand in the list and were never read; without those that changed since then. */
  missingOf(until: number): number {
    const isMissing = ({ seen, born, changed }: Item) =>
      seen === null && born < until && (changed ?? 0) < until
    return this.#items.filter(isMissing).length
  }

  /** Measures from this minute on. */
  measureFrom(time: number): void {
    this.#count(time, 0)
    this.#area = 0
    this.newAges = []
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

  /** Nothing stands elsewhere afterwards, unless the list is sorted by update. */
  #change(time: number, item: Item): void {
    if (this.#setting.order === 'by update')
      this.#items.push(...this.#items.splice(this.#items.indexOf(item), 1))
    this.#count(time, isWrong(item) ? 0 : 1)
    item.changed = time
  }

  #appear(time: number, item: Item): void {
    item.isListed = true
    this.#add(item)
    this.#count(time, 1)
  }

  #add(item: Item): void {
    const isRandom = this.#setting.order === 'random'
    this.#items.splice(isRandom ? this.#random.whole(0, this.#items.length) : this.#items.length, 0, item)
  }

  #remove(time: number): void {
    const { order, removals } = this.#setting
    const { length } = this.#items
    const first = order === 'random' ? 0 : Math.max(0, length - NEWEST)
    const isOldest = order !== 'random' && removals === 'oldest'
    const [gone] = this.#items.splice(isOldest ? 0 : this.#random.whole(first, length - 1), 1)
    if (!gone) return
    this.#count(time, isWrong(gone) ? -1 : 0)
    gone.isListed = false
  }

  #pageAt(page: number): readonly Item[] {
    const [start, end] = [(page - 1) * PER_PAGE, page * PER_PAGE]
    if (this.#setting.order !== 'first') return this.#items.slice(start, end)
    const inside = (place: number) => Math.max(0, this.total - place)
    return this.#items.slice(inside(end), inside(start)).toReversed()
  }
}

const isWrong = ({ seen, changed }: Item) => seen === null || changed !== null

function gap(perMinute: number, random: Random): number {
  return -Math.log(1 - random.next()) / perMinute
}

function pointsOfTime(perMinute: number, minutes: number, random: Random): number[] {
  const points: number[] = []
  for (let time = gap(perMinute, random); time < minutes; time += gap(perMinute, random)) points.push(time)
  return points
}

/** At which ages an item changes. */
function changesOf(stages: readonly Stage[], random: Random): number[] {
  return stages
    .filter(([chance]) => random.chance(chance))
    .map(([, minutes, spread]) => minutes * Math.exp(spread * normal(random)))
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next())
}
