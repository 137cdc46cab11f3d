import { listenWith } from '../happening.ts'
import { isListed, type ListFilters, type ListPage } from '../list.ts'
import type { SimulatedProcess } from '../process.ts'
import { jobName } from '../traffic.ts'
import { createStock, type OracleContext, splitJob } from './context.ts'
import type { PageInHand, WalkRow } from './ledger.ts'
import type { Gone } from './versions.ts'

/** What a walk saw, and when: times count what was written in this job. */
export interface Seen {
  keys: Set<number>
  /** Those on the pages of refreshes while it was open: it has not missed them. */
  refreshed: Set<number>
  start: number
  end: number
  /** Answers in all its passes: what comes in one answer cannot have moved meanwhile. */
  answers: number
  /** The pass that it is in, and the items on the pages of that one. */
  pass: number
  listed: number
  filters: ListFilters
  /** Those that worked on it since its last page: what one of them has begun to remove the next one goes on with. */
  workers: Set<SimulatedProcess>
  /** Whether the list's end was read, and whether the walk is complete. */
  isRead: boolean
  isOver: boolean
}

export interface JobKnowledge {
  time: number
  lastSeen: Map<number, number>
  /** The filters of every page that was written, and those that were configured when it was. */
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

interface Brake {
  brakePercent: number
  brakeRows: number
}

/** Nothing is known of the job yet. */
function newJob(): JobKnowledge {
  return {
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
  }
}

/** Takes note of a page that was written. */
function notePage(known: JobKnowledge, { request, page }: PageInHand, { id, passes }: WalkRow): void {
  known.time++
  const seen = seenBy(known, id)
  if (seen.answers === 0) seen.start = known.time - 1
  seen.filters = request.filters
  seen.end = known.time
  seen.answers++
  seen.listed = (seen.pass === passes ? seen.listed : 0) + page.items.length
  seen.pass = passes
  seen.isRead ||= page.next === null
  seen.workers = new Set([request.process])
  known.scopes.add(JSON.stringify(request.filters))
  for (const item of page.items) seen.keys.add(item.id)
  noteSeen(known, page)
}

/** Takes note of a page that a refresh has written: for removals it is as good as a walk's. */
function noteRefreshed(known: JobKnowledge, { request, page }: PageInHand): void {
  known.time++
  known.scopes.add(JSON.stringify(request.filters))
  for (const walk of known.walks.values())
    if (!walk.isOver) for (const { id } of page.items) walk.refreshed.add(id)
  noteSeen(known, page)
}

function noteSeen(known: JobKnowledge, { items }: ListPage): void {
  for (const { id } of items) {
    known.lastSeen.set(id, known.time)
    known.held.delete(id)
    known.missed.delete(id)
  }
}

/** Of other walks, what they write after its first page is not missed by it; of refreshes, what they write after its beginning. */
function seenBy({ walks, time }: JobKnowledge, id: number): Seen {
  const known = walks.get(id)
  if (known) return known
  const nothing = { pass: 1, answers: 0, listed: 0, isRead: false, isOver: false }
  const seen = {
    ...nothing,
    keys: new Set<number>(),
    refreshed: new Set<number>(),
    start: time,
    end: time,
    filters: {},
    workers: new Set<SimulatedProcess>(),
  }
  walks.set(id, seen)
  return seen
}

/** Whether what is due stays for now, unless somebody accepts that it goes. */
function holdsBack(
  { held }: JobKnowledge,
  { keys, listed }: Seen,
  due: readonly number[],
  all: readonly number[],
  { brakePercent, brakeRows }: Brake,
): boolean {
  if (due.length === 0) return false
  const isBeyond = due.length > brakeRows && due.length * 100 > all.length * brakePercent
  return held.size > 0 || keys.size === 0 || listed === 0 || isBeyond
}

/** Whether a walk that has been read to its end may take an item away, as far as can be told before it is complete. */
function mayGo(known: JobKnowledge, walk: Seen, id: number): boolean {
  const { trusted } = known
  if (walk.keys.has(id) || walk.refreshed.has(id) || !walk.isRead) return false
  const last = known.lastSeen.get(id) ?? 0
  return (
    (walk.answers === 1 && last < walk.end) ||
    (!!trusted && !trusted.keys.has(id) && !trusted.refreshed.has(id) && last <= trusted.end)
  )
}

/** Whether it has to, once it is trusted. */
function mustGo(known: JobKnowledge, walk: Seen, id: number): boolean {
  const { trusted } = known
  if (walk.keys.has(id) || walk.refreshed.has(id)) return false
  const last = known.lastSeen.get(id) ?? 0
  if (walk.answers === 1 && last <= walk.start) return true
  if (!trusted || trusted.keys.has(id) || trusted.refreshed.has(id)) return false
  return last <= Math.min(trusted.start, walk.start)
}

/** Whether that is why it goes. Where the filters have changed both may be true. */
function isReason({ scopes, missed }: JobKnowledge, { filters }: Seen, id: number, reason: string): boolean {
  if (!isListed({ id }, filters)) return reason === 'out_of_scope' || missed.has(id)
  return reason === 'removed' || scopes.size > 1
}

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
