import type { RefreshItem } from '../../../src/sync/refresh/ends.ts'
import type { WorldObserver } from './world.ts'

/** What was measured from a moment on. Times are minutes. */
export interface Measured {
  /** From when an item came until it was read, and from each change. */
  newAges: number[]
  changedAges: number[]
  /** Listed rows that are missing or outdated, at a random moment. */
  wrongRows: number
}

/** The rows as a program that reads pages knows them, and how far behind the list they are. */
export interface FreshnessMirror extends WorldObserver {
  /** Writes a page, and returns when each of its rows was seen first and changed last, in epoch milliseconds. */
  write(
    ids: readonly number[],
    time: number,
    at: number,
  ): { seen: RefreshItem<number>['seen'][]; added: number; changed: number }
  /** Items that came before this minute, stand in the list and were never read; without those that changed since then. */
  missingOf(until: number): number
  /** Measures from this minute on. */
  measureFrom(time: number): void
  measured(until: number): Measured
}

interface Row {
  firstAt: number
  changedAt: number
}

export function createFreshnessMirror(bornBefore: readonly number[]): FreshnessMirror {
  const rows = new Map<number, Row>([...bornBefore.keys()].map((id) => [id, { firstAt: 0, changedAt: 0 }]))
  /** When items came that are not read yet, and when rows changed since they were read. */
  const missing = new Map<number, number>()
  const outdated = new Map<number, number[]>()
  let measured = { newAges: [] as number[], changedAges: [] as number[] }
  let area = 0
  let last = 0
  let from = 0

  function wrong(): number {
    let both = 0
    for (const id of missing.keys()) if (outdated.has(id)) both++
    return missing.size + outdated.size - both
  }

  /** Adds up the wrong rows over time. */
  let now = 0
  function pass(time: number): void {
    area += now * (time - last)
    last = time
  }

  function read(id: number, time: number, at: number): Row {
    const came = missing.get(id)
    const changes = outdated.get(id)
    if (came !== undefined || changes) now--
    if (came !== undefined) measured.newAges.push(time - came)
    for (const changed of changes ?? []) measured.changedAges.push(time - changed)
    missing.delete(id)
    outdated.delete(id)
    const known = rows.get(id)
    const row = { firstAt: known?.firstAt ?? at, changedAt: known && !changes ? known.changedAt : at }
    if (!known || changes) rows.set(id, row)
    return row
  }

  return {
    onAdd(id, time) {
      pass(time)
      missing.set(id, time)
      now++
    },
    onChange(id, time) {
      pass(time)
      if (!missing.has(id) && !outdated.has(id)) now++
      outdated.set(id, [...(outdated.get(id) ?? []), time])
    },
    onRemove(id, time) {
      pass(time)
      if (missing.has(id) || outdated.has(id)) now--
      missing.delete(id)
      outdated.delete(id)
      rows.delete(id)
    },
    write(ids, time, at) {
      pass(time)
      const before = rows.size
      const changed = ids.filter((id) => outdated.has(id) && !missing.has(id)).length
      const seen = ids.map((id) => read(id, time, at))
      return { seen, added: rows.size - before, changed }
    },
    missingOf: (until) =>
      [...missing].filter(
        ([id, came]) => came < until && !(outdated.get(id)?.some((at) => at >= until) ?? false),
      ).length,
    measureFrom(time) {
      pass(time)
      measured = { newAges: [], changedAges: [] }
      area = 0
      from = time
      now = wrong()
    },
    measured(until) {
      pass(until)
      return { ...measured, wrongRows: area / (until - from) }
    },
  }
}
