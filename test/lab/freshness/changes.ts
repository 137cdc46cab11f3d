import type { Random } from '../../simulation/random.ts'
import type { ServedPage } from './living-list.ts'
import type { WorldObserver } from './world.ts'

/** How an API answers when it is asked for what changed since a moment. */
export interface ChangesSetting {
  /** `all`: it ignores the parameter, so the list itself is served. */
  answers: 'changed' | 'all'
  /** By the change, or as the list is: by the item. */
  order: 'newest first' | 'oldest first' | 'newest items first' | 'oldest items first'
  /** Minutes until a change shows there, each its own, exponential around this mean. */
  late: number
  /** Minutes to which the field is rounded down; what it is compared with is not. */
  unit: number
  /** The part of the changes that leaves the field as it was. */
  untouched: number
}

const OBEYS: ChangesSetting = {
  answers: 'changed',
  order: 'newest first',
  late: 0,
  unit: 1 / 60,
  untouched: 0,
}

export const CHANGES: Record<string, ChangesSetting | undefined> = {
  'not asked': undefined,
  obeys: OBEYS,
  'oldest change first': { ...OBEYS, order: 'oldest first' },
  'newest item first': { ...OBEYS, order: 'newest items first' },
  'oldest item first': { ...OBEYS, order: 'oldest items first' },
  'rounds to minutes': { ...OBEYS, unit: 1 },
  'a minute late': { ...OBEYS, late: 1 },
  'ten minutes late': { ...OBEYS, late: 10 },
  'a tenth of the changes leaves the field': { ...OBEYS, untouched: 0.1 },
  ignores: { ...OBEYS, answers: 'all' },
}

/** A list's changes as its API serves them. Times are minutes. */
export interface ServedChanges extends WorldObserver {
  /** The field, in epoch milliseconds. */
  changedAt(id: number): number
  pageAt(sinceMs: number, page: number, now: number): ServedPage
}

interface Change {
  id: number
  time: number
  shows: number
}

const MINUTE_MS = 60_000
const PER_PAGE = 25

export function createChanges(
  setting: ChangesSetting,
  bornBefore: readonly number[],
  list: (page: number) => ServedPage,
  random: Random,
): ServedChanges {
  const changes: Change[] = bornBefore.map((time, id) => ({ id, time, shows: time }))
  const last = new Map(changes.map((change) => [change.id, change]))

  function note(id: number, time: number): void {
    if (last.has(id) && random.chance(setting.untouched)) return
    const shows = time - setting.late * Math.log(1 - random.next())
    const change = { id, time, shows }
    changes.push(change)
    last.set(id, change)
  }

  function sinceOf(ms: number, now: number): Change[] {
    const found: Change[] = []
    for (let index = changes.length - 1; index >= 0; index--) {
      const change = changes[index]
      if (!change || change.time * MINUTE_MS < ms) break
      if (change.shows <= now && last.get(change.id) === change) found.push(change)
    }
    return found
  }

  const ordered = {
    'newest first': (found: Change[]) => found,
    'oldest first': (found: Change[]) => found.toReversed(),
    'newest items first': (found: Change[]) => found.toSorted((a, b) => b.id - a.id),
    'oldest items first': (found: Change[]) => found.toSorted((a, b) => a.id - b.id),
  }

  return {
    onAdd: note,
    onChange: note,
    onRemove: (id) => last.delete(id),
    changedAt: (id) => Math.floor((last.get(id)?.time ?? 0) / setting.unit) * setting.unit * MINUTE_MS,
    pageAt(sinceMs, page, now) {
      if (setting.answers === 'all') return list(page)
      const found = ordered[setting.order](sinceOf(sinceMs, now))
      const ids = found.slice((page - 1) * PER_PAGE, page * PER_PAGE).map(({ id }) => id)
      return { ids, total: found.length, lastPage: Math.max(1, Math.ceil(found.length / PER_PAGE)) }
    },
  }
}
