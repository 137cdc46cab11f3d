import type { Mirror, SeenKeys } from '../../../sync/mirror.ts'
import type { Job, Run, Walk } from '../../../sync/types.ts'
import { unpackTexts } from '../../../text.ts'
import type { Connection } from '../file/open.ts'
import { SCATTERED } from '../steps.ts'
import type { CollectionTables } from '../tables/collection.ts'
import { followRawRows } from '../tables/raw-rows.ts'
import type { Transact } from '../transaction.ts'
import type { JobStore } from './jobs.ts'
import { type Judge, type MissingStore, missedOnceMore } from './missing.ts'
import type { RunStore } from './runs.ts'
import type { SeenSince } from './seen-since.ts'
import { createUnseen } from './unseen.ts'

// What a trusted walk did not see, and what becomes of it. All of it goes in steps, each a transaction that leaves the
// mirror right: whoever is killed in between, the next one judges the walk from the beginning, to the same end.

export interface JudgingOptions {
  connection: Connection
  transact: Transact
  /** Reads what is committed; throws MirrorError. */
  read<T>(task: () => T): T
  /** Steps that are made to their end, or InterruptedError is thrown. */
  toTheEnd(step: (rows: number) => boolean | Promise<boolean>, most?: number): Promise<void>
  time(): string
  runs: RunStore
  jobs: JobStore
  missing: MissingStore
  seenSince: SeenSince
  openTables(job: Job): CollectionTables
}

type IsSeen = (mark: string) => boolean

type Judging = Pick<Mirror, 'findMissing' | 'holdMissing' | 'removeMissing'>

export function createJudging(options: JudgingOptions): Judging {
  const { connection, transact, read, toTheEnd, time } = options
  const { runs, jobs, missing, seenSince, openTables } = options

  /** Every row that is live was seen: where as many were seen as there are, none is to be looked for. */
  function isNothingMissing(job: Job, walk: Walk, seen: SeenKeys): boolean {
    const { rows } = jobs.state(job)
    return rows === seen.keyed && !missing.has(job) && !seenSince.hasAny(walk.id)
  }

  /** What a walk left that was abandoned before it was judged to its end counts for nothing. */
  function takeOver(job: Job, walk: Walk, lines: number): boolean {
    const { judgedWalk } = jobs.state(job)
    if (judgedWalk === walk.id) return true
    if (judgedWalk !== null && missing.forget(job, judgedWalk, lines) === lines) return false
    jobs.judge(job, walk.id)
    return true
  }

  /** Takes off what the walk saw before another one missed it. Returns the last mark; null at the end. */
  function dropSeen(job: Job, isSeen: IsSeen, behind: string, lines: number): string | null {
    const marks = missing.marksAfter(job, behind, lines)
    const states = marks.filter(isSeen).map((mark) => missing.drop(job, mark))
    jobs.addHeld(job, -states.filter((state) => state === 'held').length)
    return marks.length < lines ? null : (marks.at(-1) ?? null)
  }

  function noteMissed(job: Job, mark: string, judge: Judge): void {
    const before = missing.find(job, mark)
    const line = missedOnceMore(before, mark, judge)
    if (line !== before) missing.save(job, line)
  }

  /** Returns whether there were fewer to remove than so many. */
  function remove(job: Job, run: Run, lines: number): boolean {
    const at = time()
    const tables = openTables(job)
    const due = missing.due(job, lines)
    const keep = job.collection.history !== false
    const key = (mark: string) => unpackTexts(mark, tables.keyPaths.length).map((text) => ({ text }))
    const removed = due.filter(({ mark, reason }) =>
      tables.remove(job.organization.id, key(mark), reason, at, keep),
    ).length
    const held = due.filter(({ mark }) => missing.drop(job, mark) === 'held').length
    jobs.addRows(job, -removed)
    jobs.addHeld(job, -held)
    runs.addRemoved(run, removed)
    return due.length < lines
  }

  return {
    async findMissing(job, walk, seen, atOnce) {
      const isSeen = (mark: string) => seen.has(mark) || seenSince.has(walk.id, mark)
      if (!read(() => isNothingMissing(job, walk, seen))) {
        await toTheEnd((lines) => transact(() => takeOver(job, walk, lines)))
        let behind: string | null = ''
        await toTheEnd(async (lines) => {
          behind = await transact(() => dropSeen(job, isSeen, behind ?? '', lines))
          return behind === null
        })
        const { isOtherScope, isMixed } = read(() => jobs.state(job))
        const judge = { walkId: walk.id, atOnce, isOtherScope, isMixed, at: time() }
        const rows = followRawRows(connection, job)
        const unseen = createUnseen(rows, job, isSeen)
        const look = (most: number) => unseen.step(most, (mark) => noteMissed(job, mark, judge))
        await toTheEnd((most) => transact(() => look(most)), SCATTERED * 2)
      }
      const { rows: live, held } = read(() => jobs.state(job))
      return { due: read(() => missing.countDue(job)), held, live, listed: seen.keyed }
    },
    async holdMissing(job, why) {
      await toTheEnd(
        (lines) =>
          transact(() => {
            if (why) jobs.holdFor(job, why)
            const held = missing.hold(job, lines)
            jobs.addHeld(job, held)
            return held < lines
          }),
        SCATTERED,
      )
    },
    removeMissing: (job, run) => toTheEnd((lines) => transact(() => remove(job, run, lines)), SCATTERED),
  }
}
