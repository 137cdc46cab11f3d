import { InterruptedError } from '../errors.ts'
import { sameJson } from '../json/compare.ts'
import { parseExact } from '../json/exact.ts'
import type { Comparison, Differences } from '../sync/comparison.ts'
import type { ListedItem } from '../sync/items.ts'
import type { SeenItems } from '../sync/seen-items.ts'
import type { Checkpoint, Job, LedgerEntry, Walk } from '../sync/types.ts'
import { assertPossible } from './collection-tables.ts'
import { keyPathsOf } from './columns/key.ts'
import { type Connection, guarded } from './database.ts'
import { createMirrored } from './mirrored.ts'
import { inSteps, type StepOptions } from './steps.ts'
import { createSuspects, type Suspects } from './suspects.ts'
import { createUnseen } from './unseen.ts'
import { createWalkStore } from './walk-store.ts'

export interface ComparisonOptions extends StepOptions {
  connection: Connection
  file: string
}

interface Reading {
  count: number
  newRejects: number
  /** What it has seen before the page in hand. */
  seen: Pick<SeenItems, 'has'>
}

/** The first differences of a kind that are listed; all of them are counted. */
const LISTED = 20

/** Makes comparisons of jobs, which may go on side by side. Throws JobError where the mirror has another key. */
export function createComparer(options: ComparisonOptions): (job: Job) => Comparison {
  let comparisons = 0
  let readings = 0
  const { connection, file } = options
  return (job) => {
    guarded(file, () => assertPossible(connection, job.collection.name, keyPathsOf(job)))
    const suspects = guarded(file, () => createSuspects(connection, ++comparisons))
    return createComparison(options, job, suspects, () => ++readings)
  }
}

function createComparison(
  { connection, file, ...patience }: ComparisonOptions,
  job: Job,
  suspects: Suspects,
  nextReading: () => number,
): Comparison {
  const walks = createWalkStore(connection)
  const mirrored = createMirrored(connection, job)
  const reading: Reading = { count: 0, newRejects: 0, seen: { has: () => false } }
  // Against the mirror as it stands at one moment. It is only read, so nobody waits.
  const inOne = <T>(task: () => T): T => guarded(file, () => connection.transaction(task)())

  function begin(checkpoint: Checkpoint, seen: Reading['seen']): Walk {
    Object.assign(reading, { count: reading.count + 1, newRejects: 0, seen })
    return {
      id: nextReading(),
      kind: 'full',
      firstPage: 1,
      checkpoint,
      resumed: false,
      rowsSeen: 0,
      ...walks.expectations(job),
    }
  }

  /**
   * An item that is met twice, and was not the same thing both times, changed while the list was read. One that is met
   * first behind the reader came, or moved, there after it had passed.
   */
  function suspect(entry: ListedItem, page: number, why: LedgerEntry['why']): void {
    const suspicion = mirrored.suspicion(entry, page)
    const isMetAgain = reading.seen.has(entry.id)
    if (!isMetAgain) {
      if (suspicion) suspects.add(suspicion, why === 'forward' || why === 'overlap' ? 'suspected' : 'moved')
      return
    }
    const before = suspects.find(entry.id)
    if (!before) {
      if (suspicion) suspects.add(suspicion, 'moved')
    } else if (suspicion && isSameValue(before.json, entry)) suspects.moveTo(entry.id, page)
    else suspects.judge(entry.id, 'moved')
  }

  function isSameValue(json: string | null, { item }: ListedItem): boolean {
    if (json === null || json === item.text) return json !== null
    return sameJson(parseExact(json), item.value, new Set(job.collection.ignore))
  }

  function clear({ id }: ListedItem): void {
    if (suspects.find(id)?.kind === 'extra') suspects.judge(id, 'moved')
  }

  function judge(entry: ListedItem, page: number): void {
    const before = suspects.find(entry.id)
    if (before?.judgement !== 'suspected' || before.kind === 'extra') return
    const isCertain = mirrored.suspicion(entry, page) !== null && isSameValue(before.json, entry)
    suspects.judge(entry.id, isCertain ? 'certain' : 'moved')
  }

  return {
    isNeverSynced: async () => guarded(file, () => mirrored.isNeverSynced()),
    beginReading: async (first, seen) => guarded(file, () => begin(first, seen)),
    savePage: async ({ items, entry: { page, why } }) =>
      inOne(() => {
        for (const item of items) {
          if (mirrored.isNewReject(item)) reading.newRejects++
          if (reading.count === 1) suspect(item, page, why)
          else clear(item)
        }
        return { added: 0, changed: 0, rejected: 0, notices: [] }
      }),
    saveCheckpoint: async () => {},
    abandonWalk: async () => {},
    newRejects: () => reading.newRejects,
    nextSuspect: async (after) => guarded(file, () => suspects.nextPage(after)),
    lookAgain: async (page, items) =>
      inOne(() => {
        for (const item of items) judge(item, page)
      }),
    async suspectUnseen() {
      const unseen = createUnseen(mirrored.rows, job, reading.seen.has)
      const isDone = await inSteps(patience, (rows) =>
        inOne(() =>
          unseen.step(rows, (mark) =>
            suspects.add(
              { mark, kind: 'extra', page: null, json: null, paths: [], reject: null },
              'suspected',
            ),
          ),
        ),
      )
      if (!isDone) throw new InterruptedError('stopped before the mirror was compared')
      return guarded(file, () => suspects.count('extra', 'suspected'))
    },
    confirmExtra: async () => guarded(file, () => suspects.judgeExtra('certain')),
    differences: async () => guarded(file, () => differencesOf(suspects)),
    close: async () =>
      guarded(file, () => {
        suspects.drop()
      }),
  }
}

function differencesOf(suspects: Suspects): Pick<Differences, 'counts' | 'listed' | 'moved'> {
  const kinds = ['missing', 'extra', 'different'] as const
  const counts = { missing: 0, extra: 0, different: 0 }
  let moved = 0
  for (const kind of kinds) {
    counts[kind] = suspects.count(kind, 'certain')
    moved += suspects.count(kind, 'moved')
    // Whoever was not found again has gone, or moved too far to be looked for.
    if (kind !== 'extra') moved += suspects.count(kind, 'suspected')
  }
  return { counts, listed: kinds.flatMap((kind) => suspects.list(kind, LISTED)), moved }
}
