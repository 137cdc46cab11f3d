import type { Random } from '../random.ts'
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
  const list = createLivingList(setting.order, setting.removals, random.fork())
  for (const id of bornBefore.keys()) list.add(id)
  const happenings = plan(setting, bornBefore, bornLater, random)
  const isListed = new Set(bornBefore.keys())
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
    for (;;) {
      const happening = happenings[next]
      if (!happening || happening.time > minute) return
      next++
      happen(happening)
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

function plan(
  setting: WorldSetting,
  before: readonly number[],
  later: readonly number[],
  random: Random,
): Happening[] {
  const { life, minutes } = setting
  const happenings: Happening[] = later.map((time, index) => ({ time, id: before.length + index }))
  for (const time of pointsOfTime(setting, random)) happenings.push({ time, id: null })
  for (const [id, born] of [...before, ...later].entries())
    for (const time of changesOf(life, born, random))
      if (time > 0 && time < minutes) happenings.push({ time, id })
  return happenings.toSorted((a, b) => a.time - b.time)
}

function gap(perMinute: number, random: Random): number {
  return -Math.log(1 - random.next()) / perMinute
}
