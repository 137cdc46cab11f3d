import type { End, RefreshRules } from '../../../../src/sync/refresh/ends.ts'
import { type ScriptedList, upTo } from '../../../helpers/scripted-list.ts'

/**
 * `add`: at the end where new items appear; `other`: at the other one. `drop`: from the newest end; `clear`: all. `insert`: inside.
 * `change`: in a list by update, to the newest end. `empty`: the answer is, by mistake.
 */
export type MovementKind = 'add' | 'other' | 'remove' | 'drop' | 'clear' | 'insert' | 'change' | 'empty'

export interface Movement {
  kind: MovementKind
  count: number
  /** The place in the list, from 0 to 1. */
  at: number
}

export interface Setting extends RefreshRules {
  grows: End
  /** Whether the API says how many items there are. */
  counts: boolean
  byUpdate: boolean
}

/** A list that moves, and what may be claimed of its items. Times are epoch milliseconds. */
export interface MovingList {
  ids: number[]
  versions: Map<number, number>
  /** When each item came that was put at an end of it, and at which. */
  addedAt: Map<number, { end: End; at: number }>
  /** When an item was moved last. */
  movedAt: Map<number, number>
  /** Whether an item was ever put in elsewhere than at the end where new ones appear. */
  putElsewhere(): boolean
  move(movement: Movement, now: number): void
}

/** Never fewer: a list of a few pages is not refreshed but walked. */
const LEAST = 40

export function movingList(
  { grows, byUpdate }: Pick<Setting, 'grows' | 'byUpdate'>,
  ids: ScriptedList['ids'],
): MovingList {
  let nextId = 1000
  let isPutElsewhere = false
  const versions = new Map<number, number>()
  const addedAt = new Map<number, { end: End; at: number }>()
  const movedAt = new Map<number, number>()

  function put(id: number, end: End): void {
    if (end === 'first') ids.unshift(id)
    else ids.push(id)
  }

  function add(count: number, end: End, now: number): void {
    for (let index = 0; index < count; index++) {
      addedAt.set(nextId, { end, at: now })
      put(nextId++, end)
    }
  }

  function change(place: number, count: number, now: number): void {
    const changed = ids.slice(place, place + count)
    for (const id of changed) {
      versions.set(id, (versions.get(id) ?? 0) + 1)
      if (!byUpdate) continue
      movedAt.set(id, now)
      ids.splice(ids.indexOf(id), 1)
      put(id, grows)
    }
  }

  return {
    ids,
    versions,
    addedAt,
    movedAt,
    putElsewhere: () => isPutElsewhere,
    move({ kind, count, at }, now) {
      if (kind === 'other' || kind === 'insert') isPutElsewhere = true
      const place = Math.floor(at * ids.length)
      const most = Math.max(0, Math.min(count, ids.length - LEAST))
      if (kind === 'add') add(count, grows, now)
      else if (kind === 'other') add(count, opposite(grows), now)
      else if (kind === 'remove') ids.splice(place, most)
      else if (kind === 'drop') ids.splice(grows === 'first' ? 0 : ids.length - most, most)
      else if (kind === 'clear') ids.splice(0)
      else if (kind === 'insert') ids.splice(place, 0, ...upTo(count).map(() => nextId++))
      else if (kind === 'change') change(place, count, now)
    },
  }
}

function opposite(end: End): End {
  return end === 'first' ? 'last' : 'first'
}
