import type { Random } from '../../simulation/random.ts'

/** Where new items appear; `by update` puts changed ones there, too: at the end of the list. */
type Order = 'first' | 'last' | 'by update' | 'random'

/** Which items go; in a list without an order it is any. */
type Removals = 'oldest' | 'newest'

export interface ServedPage {
  ids: readonly number[]
  total: number
  lastPage: number
}

const HOUR = 60
const DAY = 24 * HOUR

export interface WorldSetting {
  order: Order
  removals: Removals
  life: string
  rows: number
  /** Items that come a minute, and as many go. */
  arrivals: number
  /** How long it lives. */
  minutes: number
  /** So many days after the start, and each week then, a part of the rows changes at once. */
  batch?: { day: number; part: number } | undefined
}

/** Receives what happens to the items of a list. Times are minutes. */
export interface WorldObserver {
  onAdd(id: number, time: number): void
  onChange(id: number, time: number): void
  onRemove(id: number, time: number): void
}

/** A list that lives: items come, change as their life says, and go. */
export interface World {
  /** Items that stand in it at the start, from 0 on, and when each came. */
  bornBefore: readonly number[]
  /** Lets everything up to this minute happen. */
  passTo(minute: number): void
  pageAt(page: number): ServedPage
}

interface Happening {
  time: number
  /** Null: an item goes. */
  id: number | null
}

export function createWorld(setting: WorldSetting, random: Random, observer: WorldObserver): World {
  const bornBefore = birthsBefore(setting, random)
  const bornLater = pointsOfTime(setting, random)
  const list = createList(setting, random.fork())
  for (const id of bornBefore.keys()) list.add(id)
  const happenings = plan(setting, bornBefore, bornLater, random)
  const isListed = new Set(bornBefore.keys())
  let now = 0
  let next = 0

  function happen({ id, time }: Happening): void {
    if (id === null) {
      const gone = list.remove()
      if (gone === null) return
      isListed.delete(gone)
      observer.onRemove(gone, time)
    } else if (isListed.has(id)) {
      list.change(id)
      observer.onChange(id, time)
    } else if (time === bornLater[id - bornBefore.length]) {
      isListed.add(id)
      list.add(id)
      observer.onAdd(id, time)
    }
  }

  function passTo(minute: number): void {
    for (; now < happenings.length; now++, next = 0) {
      const inMinute = happenings[now] ?? []
      if (next === 0) inMinute.sort((a, b) => a.time - b.time)
      for (; next < inMinute.length; next++) {
        const happening = inMinute[next]
        if (!happening || happening.time > minute) return
        happen(happening)
      }
      if (now + 1 > minute) return
    }
  }

  return { bornBefore, passTo, pageAt: list.pageAt }
}

const PER_PAGE = 25

/** Of so many items one goes, where the newest ones go. */
const NEWEST = 100

function createList({ order, removals }: WorldSetting, random: Random) {
  /** The newest last, but for a list in no order. */
  const ids: number[] = []

  return {
    add(id: number): void {
      if (order === 'random') ids.splice(random.whole(0, ids.length), 0, id)
      else ids.push(id)
    },
    /** Nothing stands elsewhere afterwards, unless the list is sorted by update. */
    change(id: number): void {
      if (order === 'by update') ids.push(...ids.splice(ids.indexOf(id), 1))
    },
    /** Takes an item away; none of an empty list. */
    remove(): number | null {
      if (ids.length === 0) return null
      const first = order === 'random' ? 0 : Math.max(0, ids.length - NEWEST)
      const isAny = order === 'random' || removals === 'newest'
      return ids.splice(isAny ? random.whole(first, ids.length - 1) : 0, 1)[0] ?? null
    },
    pageAt(page: number): ServedPage {
      const total = ids.length
      const start = (page - 1) * PER_PAGE
      const end = Math.min(start + PER_PAGE, total)
      const served =
        order === 'first'
          ? ids.slice(Math.max(0, total - end), Math.max(0, total - start)).toReversed()
          : ids.slice(start, end)
      return { ids: served, total, lastPage: Math.max(1, Math.ceil(total / PER_PAGE)) }
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
function plan(
  setting: WorldSetting,
  before: readonly number[],
  later: readonly number[],
  random: Random,
): Happening[][] {
  const { life, minutes } = setting
  const happenings: Happening[][] = Array.from({ length: Math.ceil(minutes) }, () => [])
  const note = (happening: Happening) => happenings[Math.floor(happening.time)]?.push(happening)
  for (const [index, time] of later.entries()) note({ time, id: before.length + index })
  for (const time of pointsOfTime(setting, random)) note({ time, id: null })
  for (const [id, born] of [...before, ...later].entries())
    for (const time of changesOf(life, born, random)) if (time > 0) note({ time, id })
  for (const time of batchesOf(setting))
    for (const [id, born] of [...before, ...later].entries())
      if (born < time && random.chance(setting.batch?.part ?? 0)) note({ time, id })
  return happenings
}

function batchesOf({ batch, minutes }: WorldSetting): number[] {
  const times: number[] = []
  for (let time = (batch?.day ?? Number.POSITIVE_INFINITY) * DAY; time < minutes; time += 7 * DAY)
    times.push(time)
  return times
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
