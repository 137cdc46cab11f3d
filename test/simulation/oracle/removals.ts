import { knownOfJobs, listenWith } from '../happening.ts'
import { isListed, type ListFilters } from '../list.ts'
import type { SimulatedProcess } from '../process.ts'
import type { OracleContext } from './context.ts'
import type { Finding, PageInHand, WalkRow } from './ledger.ts'
import type { Gone, Versions } from './versions.ts'

/** What a walk saw, and when: times count what was written in this job. */
interface Seen {
  /** Those on its pages, and on the pages of refreshes while it was open: it has not missed them. */
  keys: Set<number>
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

const newJob = () => ({
  time: 0,
  lastSeen: new Map<number, number>(),
  /** The filters of every page that was written, and those that were configured when it was. */
  scopes: new Set<string>(),
  walks: new Map<number, Seen>(),
  /** The last trusted one. */
  trusted: null as Seen | null,
  held: new Set<number>(),
  /** Those that a trusted walk did not see though its filters let them pass, and none since. */
  missed: new Set<number>(),
  /** Gone since the last walk was complete. */
  gone: [] as Gone[],
  atWork: null as { walk: Seen; process: SimulatedProcess } | null,
  /** A process died while it may have been removing or holding back: what exactly it did is known with the next walk. */
  isVague: false,
})
type JobKnowledge = ReturnType<typeof newJob>

/**
 * Promise 2: an item is removed only where the last two trusted walks did not see it and none since the first of them did
 * (one, if the list came in one answer); what is held back goes only under --accept-removals.
 */
export function watchRemovals({ setting, mirror, complain, note }: OracleContext, versions: Versions) {
  const jobs = knownOfJobs(newJob)
  let configured: ListFilters = {}

  function notePage(known: JobKnowledge, { page, request }: PageInHand): void {
    known.time++
    known.scopes.add(JSON.stringify(request.filters))
    for (const { id } of page.items) {
      known.lastSeen.set(id, known.time)
      known.held.delete(id)
      known.missed.delete(id)
    }
    compareHeld(request.job, known)
  }

  /** Whoever sees rows gone says so, at once: nobody but a walk that has been read to its end may take them away. */
  function takeGone(job: string, gone: readonly Gone[]): void {
    const known = jobs.of(job)
    const walk = known.atWork?.walk
    for (const { id, reason } of gone) {
      note(`removed: ${reason ?? 'without history'}`)
      if (!walk || !mayGo(known, walk, id))
        complain(`item ${id} is removed, and is not missed by two trusted walks`, job)
      else if (reason !== null && !isReason(known, walk, id, reason))
        complain(`item ${id} is removed as ${reason}`, job)
    }
    known.gone.push(...gone)
  }

  function judge(job: string, known: JobKnowledge, walk: Seen, row: WalkRow): void {
    const live = versions.liveIds(job)
    const all = [...live, ...known.gone.map(({ id }) => id)]
    const due = all.filter((id) => mustGo(known, walk, id))
    const gone = new Set(known.gone.map(({ id }) => id))
    const kept = due.filter((id) => !gone.has(id))
    const accepts = [...walk.workers].some((worker) => worker.acceptsRemovals)
    const brakes = holdsBack(known, walk, due.length, all.length)
    const isVague = known.isVague || walk.workers.size > 1
    if (!isVague && (accepts || !brakes) && kept.length > 0)
      complain(`walk ${row.id} leaves ${kept.join(', ')}, which are to go`, job)
    if (!isVague && !accepts && brakes && gone.size > 0)
      complain(`walk ${row.id} removes ${idsOf(known.gone)} for all the brake`, job)
    if (due.length > 0) note(brakes ? (accepts ? 'brake lifted' : 'brake holds') : 'removals go')
    known.held = new Set(isVague && heldInMirror(job) === 0 ? [] : kept)
    known.isVague = false
    known.trusted = walk
    for (const id of live) if (!walk.keys.has(id) && isListed({ id }, walk.filters)) known.missed.add(id)
  }

  /** Whether what is due stays for now, unless somebody accepts that it goes. */
  function holdsBack({ held }: JobKnowledge, { keys, listed }: Seen, due: number, all: number): boolean {
    const { brakePercent, brakeRows } = setting.config.removals
    if (due === 0) return false
    return (
      held.size > 0 || keys.size === 0 || listed === 0 || (due > brakeRows && due * 100 > all * brakePercent)
    )
  }

  function heldInMirror(job: string): number {
    return mirror.statusOf(job)?.removals_held ?? 0
  }

  function compareHeld(job: string, { held, isVague }: JobKnowledge): void {
    if (isVague) return
    const says = heldInMirror(job)
    if (says !== held.size) complain(`${held.size} removals are held back, and sync_status says ${says}`, job)
  }

  return listenWith<Finding>({
    saved({ inHand, walk }) {
      const known = jobs.of(inHand.request.job)
      if (walk) notePageOfWalk(known, inHand, walk)
      // For removals, a page of a refresh is as good as one of each walk that is open.
      else
        for (const other of known.walks.values())
          if (!other.isOver) for (const { id } of inHand.page.items) other.keys.add(id)
      notePage(known, inHand)
    },
    // A walk stands there before its first run begins, and what others see from then on counts.
    'walk changed': ({ job, walk }) => void walkOf(jobs.of(job), walk.id),
    'walk replaced': ({ job, walk }) => void jobs.of(job).walks.delete(walk.id),
    gone: ({ job, gone }) => takeGone(job, gone),
    'walk complete'({ job, walk: row }) {
      const known = jobs.of(job)
      const walk = walkOf(known, row.id)
      const isTrusted = row.kind === 'full' && (row.coverage === 'steady' || row.coverage === 'repaired')
      if (isTrusted) judge(job, known, walk, row)
      else if (known.gone.length > 0)
        complain(`walk ${row.id}, ${row.kind} and ${row.coverage}, removes ${idsOf(known.gone)}`, job)
      known.gone = []
      walk.isOver = true
      compareHeld(job, known)
    },
    'run began'({ process, job, walk: id }) {
      const known = jobs.of(job)
      const walk = walkOf(known, id)
      walk.workers.add(process)
      known.atWork = { walk, process }
      // A backfill's own filters only narrow the list that its rows belong to.
      known.scopes.add(JSON.stringify(configured))
    },
    'run finished'({ job, status, code }) {
      const { held, isVague } = jobs.of(job)
      if (status === 'succeeded' && !isVague && code !== (held.size > 0 ? 'REMOVALS_HELD' : null))
        complain(`a run ends with ${code}, while ${held.size} removals are held`, job)
    },
    'filters changed'({ filters }) {
      configured = filters
    },
    over({ process }) {
      // It may have been anywhere between the last page and the end of the walk.
      for (const known of jobs.all()) {
        const { walk } = known.atWork?.process === process ? known.atWork : {}
        if (walk?.isRead && !walk.isOver) known.isVague = true
      }
    },
  })
}

/** Of other walks, what they write after its first page is not missed by it; of refreshes, what they write after its beginning. */
function walkOf({ walks, time }: JobKnowledge, id: number): Seen {
  const nothing = { start: time, end: time, answers: 0, pass: 1, listed: 0, isRead: false, isOver: false }
  const walk = walks.get(id) ?? { ...nothing, keys: new Set(), filters: {}, workers: new Set() }
  walks.set(id, walk)
  return walk
}

function notePageOfWalk(known: JobKnowledge, { request, page }: PageInHand, { id, passes }: WalkRow): void {
  const seen = walkOf(known, id)
  if (seen.answers === 0) seen.start = known.time
  seen.filters = request.filters
  seen.end = known.time + 1
  seen.answers++
  seen.listed = (seen.pass === passes ? seen.listed : 0) + page.items.length
  seen.pass = passes
  seen.isRead ||= page.next === null
  seen.workers = new Set([request.process])
  for (const item of page.items) seen.keys.add(item.id)
}

/** Whether a walk that has been read to its end may take an item away, as far as can be told before it is complete. */
function mayGo({ trusted, lastSeen }: JobKnowledge, walk: Seen, id: number): boolean {
  if (walk.keys.has(id) || !walk.isRead) return false
  const last = lastSeen.get(id) ?? 0
  return (
    (walk.answers === 1 && last < walk.end) || (!!trusted && !trusted.keys.has(id) && last <= trusted.end)
  )
}

/** Whether it has to, once it is trusted. */
function mustGo({ trusted, lastSeen }: JobKnowledge, walk: Seen, id: number): boolean {
  if (walk.keys.has(id)) return false
  const last = lastSeen.get(id) ?? 0
  if (walk.answers === 1 && last <= walk.start) return true
  return !!trusted && !trusted.keys.has(id) && last <= Math.min(trusted.start, walk.start)
}

/** Whether that is why it goes. Where the filters have changed both may be true. */
function isReason({ scopes, missed }: JobKnowledge, { filters }: Seen, id: number, reason: string): boolean {
  if (!isListed({ id }, filters)) return reason === 'out_of_scope' || missed.has(id)
  return reason === 'removed' || scopes.size > 1
}

function idsOf(gone: readonly Gone[]): string {
  return gone.map(({ id }) => id).join(', ')
}
