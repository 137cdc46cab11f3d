import { knownOfJobs, listenWith } from '../happening.ts'
import { listedItems, type ListFilters, type SimulatedList } from '../list.ts'
import type { SimulatedProcess } from '../process.ts'
import { iso, type OracleContext } from './context.ts'
import type { Finding } from './ledger.ts'

type End = 'first' | 'last'

/** A refresh from its beginning to its end. */
interface UnderWay {
  process: SimulatedProcess
  run: number
  /** The latest time that it may claim. */
  startedAt: string
  /** Items that stood at an end when it began, having come there. */
  arrived: Map<number, End>
  /** How the list has moved meanwhile. */
  ways: Set<'added first' | 'added last' | 'added inside' | 'removed' | 'moved'>
  filters: ListFilters
}

const newJob = () => ({
  owner: null as SimulatedProcess | null,
  /** `fresh_as_of` as it was at the last look. */
  fresh: null as string | null,
  /** Items that came at an end, and stand where they were put. */
  arrived: new Map<number, End>(),
  /** What was seen first by then is settled: the last page of the last refresh that claimed something, or the start of a later walk. */
  settled: '',
  underWay: null as UnderWay | null,
  /** The last page of a refresh. */
  lastPageAt: '',
})
type JobKnowledge = ReturnType<typeof newJob>

/** Of a job that has no line of `sync_status` yet. */
const NOT_YET = { as_of: null, fresh_as_of: null, newest: null }

/** So many rows in a row that are settled end a refresh: what is put in further inside is not claimed. */
const KNOWN_ROWS = 25

type LiveOf = (job: string, id: number) => { firstSeen: string; from: string } | undefined

/**
 * Promise 7: what was added at the newest end before `fresh_as_of`, and still stands there, is in the mirror; it is never before `as_of`.
 * Where the list moved while it was read, so that it may have hidden something, that is counted.
 */
export function watchFreshness(
  { wall, mirror, complain, note }: OracleContext,
  lists: ReadonlyMap<string, SimulatedList>,
  liveOf: LiveOf,
) {
  const jobs = knownOfJobs(newJob)
  const isoNow = () => iso(wall())

  function look(job: string): void {
    const known = jobs.of(job)
    const { as_of: asOf, fresh_as_of: fresh, newest } = mirror.statusOf(job) ?? NOT_YET
    const before = known.fresh
    known.fresh = fresh
    if (asOf !== null && (fresh === null || fresh < asOf))
      complain(`fresh_as_of is ${fresh}, before ${asOf}, which is as_of`, job)
    // It goes back where a walk finds new items at another end, and where the clock was set back.
    if (fresh === null || (before !== null && fresh <= before) || fresh === asOf) return
    const refresh = known.underWay
    if (refresh) judge(job, known, refresh, fresh, newest)
    else complain(`fresh_as_of is ${fresh} after a walk, whose as_of is ${asOf}`, job)
  }

  function judge(job: string, known: JobKnowledge, refresh: UnderWay, fresh: string, newest: End | null) {
    if (fresh > refresh.startedAt)
      complain(`fresh_as_of is ${fresh}, but the refresh began at ${refresh.startedAt}`, job)
    for (const end of newest === null ? (['first', 'last'] as const) : [newest]) {
      const missing = reach(job, known, refresh.filters, end).filter(
        (id) => refresh.arrived.get(id) === end && known.arrived.has(id) && !liveOf(job, id),
      )
      const isSure = mayNotHide(refresh, end, newest === null)
      note(isSure ? 'claim of a list that cannot hide anything' : 'claim of a list that moved')
      if (missing.length > 0 && isSure)
        complain(`fresh_as_of claims ${missing.join(', ')}, which came at the ${end} end before`, job)
    }
    known.settled = known.lastPageAt
  }

  /** The items from the newest end to where 25 in a row are settled, behind those that changed since. */
  function reach(job: string, { settled }: JobKnowledge, filters: ListFilters, end: End): number[] {
    const items = listedItems(lists.get(job), filters)
    const met: number[] = []
    let inBlock = true
    let run = 0
    for (const { id } of end === 'first' ? items : items.toReversed()) {
      met.push(id)
      const live = liveOf(job, id)
      if (!live || live.firstSeen > settled) run = 0
      else {
        inBlock &&= live.from > settled
        run = inBlock ? 0 : run + 1
      }
      if (run >= KNOWN_ROWS) break
    }
    return met
  }

  /** Forgets the refreshes that are over by what has happened. */
  function endOf(isOver: (refresh: UnderWay) => boolean): void {
    for (const known of jobs.all()) if (known.underWay && isOver(known.underWay)) known.underWay = null
  }

  return listenWith<Finding>({
    claimed({ job, process }) {
      const known = jobs.of(job)
      known.owner = process
      // A refresh of whoever had the job before, cut off from the server, is over: it can write nothing more.
      if (known.underWay?.process !== process) known.underWay = null
    },
    committed({ process }) {
      for (const job of lists.keys()) if (jobs.of(job).owner === process) look(job)
    },
    releasing({ job }) {
      jobs.of(job).owner = null
    },
    'refresh began'({ process, run, job, filters }) {
      // Its line was written in the moment in which its process was killed elsewhere: nobody goes on with it.
      if (!process.isAlive()) return
      const known = jobs.of(job)
      const arrived = new Map(known.arrived)
      known.underWay = { process, run, startedAt: isoNow(), arrived, ways: new Set(), filters }
    },
    'refresh finished'({ job }) {
      jobs.of(job).underWay = null
    },
    'run cancelled': ({ process, run }) => endOf((one) => one.process === process && one.run === run),
    'list changed'({ job, change, movement: { added, removed, moved } }) {
      const known = jobs.of(job)
      for (const id of [...removed, ...moved]) known.arrived.delete(id)
      const end = change.to === 'front' ? 'first' : change.to === 'end' ? 'last' : null
      if (end) for (const id of added) known.arrived.set(id, end)
      const ways = known.underWay?.ways
      if (added.length > 0) ways?.add(end ? `added ${end}` : 'added inside')
      if (removed.length > 0) ways?.add('removed')
      if (moved.length > 0) ways?.add('moved')
    },
    written({ request: { job }, walk, written }) {
      // Of a page without a change no row says when it was written.
      if (walk === null) jobs.of(job).lastPageAt = written.at ?? isoNow()
    },
    'walk changed'({ job, walk }) {
      if (jobs.of(job).underWay) complain(`walk ${walk.id} changes while the list is refreshed`, job)
    },
    gone({ job }) {
      if (jobs.of(job).underWay) complain('a refresh removes items', job)
    },
    'walk complete'({ job, walk }) {
      if (walk.kind !== 'full') return
      const known = jobs.of(job)
      const settled = known.settled === '' ? walk.updated_at : walk.started_at
      if (settled > known.settled) known.settled = settled
    },
    over: ({ process }) => endOf((one) => one.process === process),
  })
}

/**
 * Whether all that could be missed leaves a sign. Read from the first page on, additions repeat items and removals show in the
 * total; from the last one on, removals move items to where it is not read yet.
 */
function mayNotHide({ ways }: UnderWay, end: End, areBothRead: boolean): boolean {
  if (ways.size === 0) return true
  if (areBothRead || ways.has('moved')) return false
  const isAdded = [...ways].some((way) => way.startsWith('added'))
  if (end === 'first') return !(isAdded && ways.has('removed'))
  return !ways.has('added first') && !ways.has('added inside') && !(isAdded && ways.has('removed'))
}
