import { listenWith } from '../happening.ts'
import { isListed, type ListFilters } from '../list.ts'
import type { SimulatedProcess } from '../process.ts'
import { jobName } from '../traffic.ts'
import {
  holdsBack,
  isReason,
  type JobKnowledge,
  mayGo,
  mustGo,
  newJob,
  notePage,
  noteRefreshed,
  type Seen,
  seenBy,
} from './absence.ts'
import { createStock, type OracleContext, splitJob } from './context.ts'
import type { PageInHand, WalkRow } from './ledger.ts'
import type { Gone } from './versions.ts'

/**
 * Promise 2: an item is removed only where the last two trusted walks did not see it and none since the first of them did
 * (one, if the list came in one answer); what is held back goes only under --accept-removals.
 */
export function watchRemovals({ setting, mirror, complain, note }: OracleContext) {
  const jobs = createStock((_job: string) => newJob())
  let configured: ListFilters = {}

  function onSaved(inHand: PageInHand, row: WalkRow): void {
    const { job } = inHand.request
    notePage(jobs.of(job), inHand, row)
    compareHeld(job, jobs.of(job))
  }

  function onRefreshed(inHand: PageInHand): void {
    const { job } = inHand.request
    noteRefreshed(jobs.of(job), inHand)
    compareHeld(job, jobs.of(job))
  }

  /** `live`: those that are live now, without what is gone. */
  function onWalk(
    job: string,
    row: WalkRow,
    before: WalkRow | null,
    live: readonly number[],
    gone: readonly Gone[],
  ): void {
    const known = jobs.of(job)
    takeGone(job, gone)
    if (row.status !== 'complete' || before?.status === 'complete') return
    const walk = known.walks.get(row.id)
    const isTrusted = row.kind === 'full' && (row.coverage === 'steady' || row.coverage === 'repaired')
    if (walk && isTrusted) judge(job, known, walk, row, live)
    else if (known.gone.length > 0)
      complain(`walk ${row.id}, ${row.kind} and ${row.coverage}, removes ${idsOf(known.gone)}`, job)
    known.gone = []
    if (walk) walk.isOver = true
    compareHeld(job, known)
  }

  /** Whoever sees rows gone says so, at once: nobody but a walk that has been read to its end may take them away. */
  function takeGone(job: string, gone: readonly Gone[]): void {
    const known = jobs.of(job)
    const walk = known.atWork && known.walks.get(known.atWork.walk)
    for (const { id, reason } of gone) {
      note(`removed: ${reason ?? 'without history'}`)
      if (!walk || !mayGo(known, walk, id))
        complain(`item ${id} is removed, and is not missed by two trusted walks`, job)
      else if (reason !== null && !isReason(known, walk, id, reason))
        complain(`item ${id} is removed as ${reason}`, job)
    }
    known.gone.push(...gone)
  }

  function judge(job: string, known: JobKnowledge, walk: Seen, row: WalkRow, live: readonly number[]): void {
    const all = [...live, ...known.gone.map(({ id }) => id)]
    const due = all.filter((id) => mustGo(known, walk, id))
    const gone = new Set(known.gone.map(({ id }) => id))
    const kept = due.filter((id) => !gone.has(id))
    const accepts = [...walk.workers].some((worker) => worker.acceptsRemovals)
    const brakes = holdsBack(known, walk, due, all, setting.config.removals)
    if (!known.isVague && walk.workers.size === 1) {
      if (accepts || !brakes) {
        if (kept.length > 0) complain(`walk ${row.id} leaves ${kept.join(', ')}, which are to go`, job)
      } else if (gone.size > 0) complain(`walk ${row.id} removes ${idsOf(known.gone)} for all the brake`, job)
    }
    if (due.length > 0) note(brakes ? (accepts ? 'brake lifted' : 'brake holds') : 'removals go')
    const wasVague = known.isVague || walk.workers.size > 1
    const isNoneHeld = wasVague && heldInMirror(job) === 0
    known.held = new Set(isNoneHeld ? [] : kept)
    known.isVague = false
    known.trusted = walk
    const missed = live.filter((id) => !walk.keys.has(id) && !walk.refreshed.has(id))
    for (const id of missed) if (isListed({ id }, walk.filters)) known.missed.add(id)
  }

  function heldInMirror(job: string): number {
    const sql = 'SELECT removals_held FROM sync_status WHERE organization_id = ? AND collection = ?'
    return Number(mirror.value(sql, ...splitJob(job)) ?? 0)
  }

  function compareHeld(job: string, { held, isVague }: JobKnowledge): void {
    if (isVague) return
    const says = heldInMirror(job)
    if (says !== held.size) complain(`${held.size} removals are held back, and sync_status says ${says}`, job)
  }

  function onSucceeded(job: string, code: string | null): void {
    const known = jobs.of(job)
    if (known.isVague) return
    const expected = known.held.size > 0 ? 'REMOVALS_HELD' : null
    if (code !== expected)
      complain(`a run ends with ${code}, while ${known.held.size} removals are held`, job)
  }

  function onEnd(process: SimulatedProcess): void {
    for (const [, known] of jobs.entries()) {
      const walk = known.atWork?.process === process ? known.walks.get(known.atWork.walk) : undefined
      // It may have been anywhere between the last page and the end of the walk.
      if (walk?.isRead && !walk.isOver) known.isVague = true
    }
  }

  return {
    tell: listenWith({
      'run began'({ process, job: { organization, collection }, walk }) {
        const known = jobs.of(jobName(organization.id, collection.name))
        known.atWork = { walk, process }
        // A backfill's own filters only narrow the list that its rows belong to.
        known.scopes.add(JSON.stringify(configured))
        seenBy(known, walk).workers.add(process)
      },
      'run finished'({ job: { organization, collection }, outcome: { status, errorCode } }) {
        if (status === 'succeeded') onSucceeded(jobName(organization.id, collection.name), errorCode)
      },
      'filters changed'({ filters }) {
        configured = filters
      },
      killed: ({ process }) => onEnd(process),
      ended: ({ process }) => onEnd(process),
    }),
    onSaved,
    onRefreshed,
    /** A walk stands there before its first run begins, and what others see from then on counts. */
    onBegun: (job: string, walk: number) => {
      seenBy(jobs.of(job), walk)
    },
    onWalk,
    takeGone,
  }
}

function idsOf(gone: readonly Gone[]): string {
  return gone.map(({ id }) => id).join(', ')
}
