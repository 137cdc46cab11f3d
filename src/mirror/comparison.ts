import { InterruptedError } from '../errors.ts'
import { parseExact } from '../json/exact.ts'
import { sameJson } from '../json/same.ts'
import type { Comparison, Differences } from '../sync/comparison.ts'
import type { Checkpoint, Job, Page, SightedItem, Sighting, Walk } from '../sync/types.ts'
import { assertPossible } from './collection-tables.ts'
import { type Connection, guarded } from './database.ts'
import { ledgerLine, noteSeen } from './ledger-line.ts'
import { createMirrored } from './mirrored.ts'
import { sightingOf } from './placing.ts'
import { createSeenItems, type SeenItems } from './seen-items.ts'
import { keyPathsOf, sightItems } from './sighting.ts'
import { inSteps, type StepOptions } from './steps.ts'
import { createSuspects, type Suspects } from './suspects.ts'
import { createUnseen } from './unseen.ts'
import { createWalkStore } from './walk-store.ts'

export interface ComparisonOptions extends StepOptions {
  /** One on which no walk of a sync is read: both keep what they have seen in temporary tables. */
  connection: Connection
  file: string
}

/** The first differences of a kind that are listed; all of them are counted. */
const LISTED = 20

/** Makes comparisons of jobs, which may go on side by side. Throws JobError where the mirror has another key. */
export function createComparer(options: ComparisonOptions): (job: Job) => Comparison {
  let comparisons = 0
  let readings = 0
  const { connection, file } = options
  const seen = guarded(file, () => createSeenItems(connection))
  return (job) => {
    guarded(file, () => assertPossible(connection, job.collection.name, keyPathsOf(job)))
    const suspects = guarded(file, () => createSuspects(connection, ++comparisons))
    return createComparison(options, job, { suspects, seen }, () => ++readings)
  }
}

function createComparison(
  { connection, file, ...patience }: ComparisonOptions,
  job: Job,
  { suspects, seen }: { suspects: Suspects; seen: SeenItems },
  nextReading: () => number,
): Comparison {
  const walks = createWalkStore(connection)
  const mirrored = createMirrored(connection, job)
  const reading = { id: 0, count: 0, answers: 0, items: 0, newRejects: 0 }
  // Against the mirror as it stands at one moment. It is only read, so nobody waits.
  const inOne = <T>(task: () => T): T => guarded(file, () => connection.transaction(task)())

  function begin(checkpoint: Checkpoint): Walk {
    if (reading.count > 0) seen.forget(reading.id)
    const count = reading.count + 1
    Object.assign(reading, { id: nextReading(), count, answers: 0, items: 0, newRejects: 0 })
    seen.begin(reading.id)
    const expectsMoves = walks.expectsMoves(job)
    return {
      id: reading.id,
      kind: 'full',
      firstPage: 1,
      checkpoint,
      resumed: false,
      rowsSeen: 0,
      expectsMoves,
    }
  }

  /**
   * An item that is met twice, and was not the same thing both times, changed while the list was read. One that is met
   * first behind the reader came, or moved, there after it had passed.
   */
  function suspect(entry: SightedItem, page: Page, why: Sighting['why']): void {
    const suspicion = mirrored.suspicion(entry, page.number)
    const isMetAgain = seen.where(reading.id, entry.mark) !== undefined
    if (!isMetAgain) {
      if (suspicion) suspects.add(suspicion, why === 'forward' || why === 'overlap' ? 'suspected' : 'moved')
      return
    }
    const before = suspects.find(entry.mark)
    if (!before) {
      if (suspicion) suspects.add(suspicion, 'moved')
    } else if (suspicion && isSameValue(before.json, entry)) suspects.moveTo(entry.mark, page.number)
    else suspects.judge(entry.mark, 'moved')
  }

  function isSameValue(json: string | null, { item }: SightedItem): boolean {
    if (json === null || json === item.text) return json !== null
    return sameJson(parseExact(json), item.value, new Set(job.collection.ignore))
  }

  function clear({ mark }: SightedItem): void {
    if (suspects.find(mark)?.kind === 'extra') suspects.judge(mark, 'moved')
  }

  function judge(entry: SightedItem, page: Page): void {
    const before = suspects.find(entry.mark)
    if (before?.judgement !== 'suspected' || before.kind === 'extra') return
    const isCertain = mirrored.suspicion(entry, page.number) !== null && isSameValue(before.json, entry)
    suspects.judge(entry.mark, isCertain ? 'certain' : 'moved')
  }

  return {
    isNeverSynced: async () => guarded(file, () => mirrored.isNeverSynced()),
    beginReading: async (first) => guarded(file, () => begin(first)),
    sight: async (_job, walk, from, page) =>
      guarded(file, () => {
        const entries = sightItems(job, page, keyPathsOf(job))
        const before = seen.whereAll(
          walk.id,
          entries.map(({ mark }) => mark),
        )
        return sightingOf(entries, before, from, reading.answers + 1, seen.ledger(walk.id))
      }),
    savePage: async (_job, walk, _run, page, sighting) =>
      inOne(() => {
        const { entries } = sighting
        for (const entry of entries) {
          if (mirrored.isNewReject(entry)) reading.newRejects++
          if (reading.count === 1) suspect(entry, page, sighting.why)
          else clear(entry)
        }
        noteSeen(seen, walk.id, ledgerLine(page, sighting))
        reading.answers++
        reading.items += sighting.newToWalk
        return { added: 0, changed: 0, rejected: 0, notices: [] }
      }),
    saveCheckpoint: async () => {},
    abandonWalk: async () => {},
    reading: () => {
      const { items, newRejects } = reading
      return { items, newRejects }
    },
    nextSuspect: async (after) => guarded(file, () => suspects.nextPage(after)),
    lookAgain: async (page) =>
      inOne(() => {
        for (const entry of sightItems(job, page, keyPathsOf(job))) judge(entry, page)
      }),
    async suspectUnseen() {
      const unseen = createUnseen(mirrored.rows, job, (mark) => seen.where(reading.id, mark) !== undefined)
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
        if (reading.count > 0) seen.forget(reading.id)
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
