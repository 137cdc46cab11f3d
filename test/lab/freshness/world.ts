import type { Random } from '../../simulation/random.ts'
import { changesOf } from './lives.ts'
import { createLivingList, type Order, type Removals, type ServedPage } from './living-list.ts'

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

const DAY = 24 * 60

interface Happening {
  time: number
  /** Null: an item goes. */
  id: number | null
}

export function createWorld(setting: WorldSetting, random: Random, observer: WorldObserver): World {
  const bornBefore = birthsBefore(setting, random)
  const bornLater = pointsOfTime(setting, random)
  const list = createLivingList(setting.order, setting.removals, random.fork())
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
