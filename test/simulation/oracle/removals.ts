import { listenWith } from '../happening.ts'
import { isListed, type ListFilters } from '../list.ts'
import type { SimulatedProcess } from '../process.ts'
import { jobName } from '../traffic.ts'
import { createStock, type OracleContext, splitJob } from './context.ts'
import type { PageInHand, WalkRow } from './ledger.ts'
import type { Gone } from './versions.ts'

/** What a walk saw, and when: times count what was written in this job. */
interface Seen {
  keys: Set<number>
  start: number
  end: number
  pages: number
  /** Of its last answer. */
  lastPage: number
  filters: ListFilters
  /** Those that worked on it since its last page: what one of them has begun to remove the next one goes on with. */
  workers: Set<SimulatedProcess>
  /** Whether the list's end was read, and whether the walk is complete. */
  isRead: boolean
  isOver: boolean
}

interface JobKnowledge {
  time: number
  lastSeen: Map<number, number>
  /** The filters of every page that was written. */
  scopes: Set<string>
  walks: Map<number, Seen>
  /** The last trusted one. */
  trusted: Seen | null
  held: Set<number>
  /** Those that a trusted walk did not see though its filters let them pass, and none since. */
  missed: Set<number>
  /** Gone since the last walk was complete. */
  gone: Gone[]
  atWork: { walk: number; process: SimulatedProcess } | null
  /** A process died while it may have been removing or holding back: what exactly it did is known with the next walk. */
  isVague: boolean
}

/**
 * Promise 2: an item is removed only where the last two trusted walks did not see it and none since the first of them did
 * (one, if the list came in one answer); what is held back goes only under --accept-removals.
 */
export function watchRemovals({ setting, mirror, complain, note }: OracleContext) {
  const jobs = createStock(
    (_job: string): JobKnowledge => ({
      time: 0,
      lastSeen: new Map(),
      scopes: new Set(),
      walks: new Map(),
      trusted: null,
      held: new Set(),
      missed: new Set(),
      gone: [],
      atWork: null,
      isVague: false,
    }),
  )

  function onSaved({ request, page }: PageInHand, { id }: WalkRow): void {
    const known = jobs.of(request.job)
    known.time++
    const seen = seenBy(known, id)
    seen.filters = request.filters
    seen.pages++
    seen.end = known.time
    seen.lastPage = page.lastPage
    seen.isRead ||= page.next === null
    seen.workers = new Set([request.process])
    known.scopes.add(JSON.stringify(request.filters))
    for (const item of page.items) {
      seen.keys.add(item.id)
      known.lastSeen.set(item.id, known.time)
      known.held.delete(item.id)
      known.missed.delete(item.id)
    }
    compareHeld(request.job, known)
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
    const due = all.filter((id) => mustGo(known, walk, id, row.pages))
    const gone = new Set(known.gone.map(({ id }) => id))
    const kept = due.filter((id) => !gone.has(id))
    const accepts = [...walk.workers].some((worker) => worker.acceptsRemovals)
    const brakes = holdsBack(known, walk, due, all)
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
    for (const id of live) if (!walk.keys.has(id) && isListed({ id }, walk.filters)) known.missed.add(id)
  }

  /** Whether what is due stays for now, unless somebody accepts that it goes. */
  function holdsBack(
    { held }: JobKnowledge,
    { keys }: Seen,
    due: readonly number[],
    all: readonly number[],
  ): boolean {
    if (due.length === 0) return false
    const { brakePercent, brakeRows } = setting.config.removals
    const isBeyond = due.length > brakeRows && due.length * 100 > all.length * brakePercent
    return held.size > 0 || keys.size === 0 || isBeyond
  }

  function mayGo(known: JobKnowledge, walk: Seen, id: number): boolean {
    if (walk.keys.has(id) || !walk.isRead) return false
    const last = known.lastSeen.get(id) ?? 0
    const { trusted } = known
    return (
      (walk.lastPage <= 1 && last < walk.end) || (!!trusted && !trusted.keys.has(id) && last <= trusted.end)
    )
  }

  function mustGo(known: JobKnowledge, walk: Seen, id: number, pages: number): boolean {
    if (walk.keys.has(id)) return false
    const last = known.lastSeen.get(id) ?? 0
    const { trusted } = known
    if (pages === 1 && last <= walk.start) return true
    return !!trusted && !trusted.keys.has(id) && last <= Math.min(trusted.start, walk.start)
  }

  function isReason(
    { scopes, missed }: JobKnowledge,
    { filters }: Seen,
    id: number,
    reason: string,
  ): boolean {
    if (!isListed({ id }, filters)) return reason === 'out_of_scope' || missed.has(id)
    return reason === 'removed' || scopes.size > 1
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
        seenBy(known, walk).workers.add(process)
      },
      'run finished'({ job: { organization, collection }, outcome: { status, errorCode } }) {
        if (status === 'succeeded') onSucceeded(jobName(organization.id, collection.name), errorCode)
      },
      killed: ({ process }) => onEnd(process),
      ended: ({ process }) => onEnd(process),
    }),
    onSaved,
    onWalk,
    takeGone,
  }
}

/** From its very beginning: what others see from then on is not missed by it. */
function seenBy({ walks, time }: JobKnowledge, id: number): Seen {
  const known = walks.get(id)
  if (known) return known
  const nothing = { pages: 0, lastPage: 0, isRead: false, isOver: false }
  const seen = {
    ...nothing,
    keys: new Set<number>(),
    start: time,
    end: time,
    filters: {},
    workers: new Set<SimulatedProcess>(),
  }
  walks.set(id, seen)
  return seen
}

function idsOf(gone: readonly Gone[]): string {
  return gone.map(({ id }) => id).join(', ')
}
