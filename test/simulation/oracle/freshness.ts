import { type Happening, type HappeningOf, listenWith } from '../happening.ts'
import { isListed, type ListFilters, type ListItem, type SimulatedList } from '../list.ts'
import type { SimulatedProcess } from '../process.ts'
import { jobName } from '../traffic.ts'
import { createStock, type OracleContext, splitJob } from './context.ts'
import type { PageInHand, WalkRow } from './ledger.ts'

type End = 'first' | 'last'

interface Status {
  as_of: string | null
  fresh_as_of: string | null
  newest: End | null
}

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

interface JobKnowledge {
  status: Status
  /** Items that came at an end, and stand where they were put. */
  arrived: Map<number, End>
  /** What was seen first by then is settled: the last page of the last refresh that claimed something, or the start of a later walk. */
  settled: string
  /** When the walk that is open began. */
  underWay: UnderWay | null
  /** The last refresh that succeeded. */
  finished: UnderWay | null
  /** The last page of a refresh. */
  lastPageAt: string
  /** Whether a walk of another list may complete. */
  isFiltered: boolean
}

/** So many rows in a row that are settled end a refresh: what is put in further inside is not claimed. */
const KNOWN_ROWS = 25

const NO_STATUS: Status = { as_of: null, fresh_as_of: null, newest: null }

type TimesOf = (job: string, id: number) => { firstSeen: string; from: string } | undefined

/**
 * Promise 7: what was added at the newest end before `fresh_as_of`, and still stands there, is in the mirror; it is never
 * before `as_of`, and never goes back. Where the list moved while it was read, so that it may have hidden something, that is
 * counted.
 */
export function watchFreshness(
  { wall, mirror, complain, note }: OracleContext,
  lists: ReadonlyMap<string, SimulatedList>,
  timesOf: TimesOf,
) {
  const jobs = createStock(
    (_job: string): JobKnowledge => ({
      status: NO_STATUS,
      arrived: new Map(),
      settled: '',
      underWay: null,
      finished: null,
      lastPageAt: '',
      isFiltered: false,
    }),
  )
  /** Whether the end where new items appear was configured meanwhile. */
  let isEndConfigured = false
  const isoNow = () => new Date(wall.now()).toISOString()

  function statusOf(job: string): Status {
    const sql =
      'SELECT as_of, fresh_as_of, newest FROM sync_status WHERE organization_id = ? AND collection = ?'
    return (mirror.rows(sql, ...splitJob(job))[0] as Status | undefined) ?? NO_STATUS
  }

  function look(job: string): void {
    const known = jobs.of(job)
    const before = known.status
    const status = statusOf(job)
    known.status = status
    const { as_of: asOf, fresh_as_of: fresh } = status
    if (asOf !== null && (fresh === null || fresh < asOf))
      complain(`fresh_as_of is ${fresh}, before ${asOf}, which is as_of`, job)
    if (before.fresh_as_of === fresh) return
    const isBack = before.fresh_as_of !== null && (fresh === null || fresh < before.fresh_as_of)
    // A walk that finds new items at the other end than the configured one takes back what was claimed of that, also what was claimed of
    // both ends before one of them was configured.
    const isRefuted = status.newest === null && (before.newest !== null || isEndConfigured) && fresh === asOf
    if (isBack && !known.isFiltered && !wall.wasSet() && !isRefuted)
      complain(`fresh_as_of goes back from ${before.fresh_as_of} to ${fresh}`, job)
    // Claims of a clock that ran ahead are withdrawn once it was set back: the walk's own stays, and hides younger ones until the next walk.
    const isWithdrawn = isBack && fresh === asOf
    const refresh = known.underWay ?? (isBack ? known.finished : null)
    if (refresh && fresh !== null && !isWithdrawn) judge(job, known, refresh, fresh)
    else if (fresh !== asOf) complain(`fresh_as_of is ${fresh} after a walk, whose as_of is ${asOf}`, job)
  }

  function judge(job: string, known: JobKnowledge, refresh: UnderWay, fresh: string): void {
    note('fresh_as_of moves')
    if (fresh > refresh.startedAt)
      complain(`fresh_as_of is ${fresh}, but the refresh began at ${refresh.startedAt}`, job)
    const { newest } = known.status
    for (const end of newest === null ? (['first', 'last'] as const) : [newest])
      judgeEnd(job, known, refresh, end)
    known.settled = known.lastPageAt
  }

  function judgeEnd(job: string, known: JobKnowledge, refresh: UnderWay, end: End): void {
    const missing = reach(job, known, refresh.filters, end).filter(
      (id) => refresh.arrived.get(id) === end && known.arrived.has(id) && !timesOf(job, id),
    )
    const isSure = mayNotHide(refresh, end, known.status.newest === null)
    note(isSure ? 'claim of a list that cannot hide anything' : 'claim of a list that moved')
    if (missing.length === 0) return
    if (!isSure) note('claim that is untrue')
    else complain(`fresh_as_of claims ${missing.join(', ')}, which came at the ${end} end before`, job)
  }

  /** The items from the newest end to where 25 in a row are settled, behind those that changed since. */
  function reach(job: string, { settled }: JobKnowledge, filters: ListFilters, end: End): number[] {
    const items = itemsOf(job, filters)
    const met: number[] = []
    let inBlock = true
    let run = 0
    for (const { id } of end === 'first' ? items : items.toReversed()) {
      met.push(id)
      const times = timesOf(job, id)
      if (!times || times.firstSeen > settled) run = 0
      else {
        inBlock &&= times.from > settled
        run = inBlock ? 0 : run + 1
      }
      if (run >= KNOWN_ROWS) break
    }
    return met
  }

  function itemsOf(job: string, filters: ListFilters): ListItem[] {
    return (lists.get(job)?.items ?? []).filter((item) => isListed(item, filters))
  }

  function onBegan({ process, run, job: { organization, collection } }: HappeningOf<'refresh began'>): void {
    // Its line was written in the moment in which its process was killed elsewhere: nobody goes on with it.
    if (!process.isAlive()) return
    const known = jobs.of(jobName(organization.id, collection.name))
    known.underWay = {
      process,
      run,
      startedAt: isoNow(),
      arrived: new Map(known.arrived),
      ways: new Set(),
      filters: collection.filters,
    }
  }

  function onChange({ job, change, movement }: HappeningOf<'list changed'>): void {
    const known = jobs.of(job)
    const { added, removed, moved } = movement
    for (const id of [...removed, ...moved]) known.arrived.delete(id)
    const end = 'to' in change ? endOf(change.to) : null
    if (end) for (const id of added) known.arrived.set(id, end)
    const ways = known.underWay?.ways
    if (added.length > 0) ways?.add(end ? `added ${end}` : 'added inside')
    if (removed.length > 0) ways?.add('removed')
    if (moved.length > 0) ways?.add('moved')
  }

  function onProcess(process: SimulatedProcess): void {
    for (const [, known] of jobs.entries()) if (known.underWay?.process === process) known.underWay = null
  }

  function onCommitted(process: SimulatedProcess): void {
    for (const [job, owner] of owners) if (owner === process) look(job)
  }

  const owners = new Map<string, SimulatedProcess>()

  /** A refresh of whoever had the job before, cut off from the server, is over: it can write nothing more. */
  function onClaimed(told: HappeningOf<'claimed'>): void {
    const job = nameOf(told)
    owners.set(job, told.process)
    const known = jobs.of(job)
    if (known.underWay && known.underWay.process !== told.process) {
      note('refresh overtaken')
      known.underWay = null
    }
  }

  return {
    tell: listenWith({
      claimed: onClaimed,
      releasing: (told) => owners.delete(nameOf(told)),
      committed: ({ process }) => onCommitted(process),
      'refresh began': onBegan,
      'refresh finished'(told) {
        const known = jobs.of(nameOf(told))
        const { status, errorCode } = told.outcome
        note(`refresh ${status === 'succeeded' ? status : errorCode}`)
        if (status === 'succeeded') known.finished = known.underWay
        known.underWay = null
      },
      'run cancelled'({ process, run }) {
        for (const [, known] of jobs.entries())
          if (known.underWay?.process === process && known.underWay.run === run) known.underWay = null
      },
      'list changed': onChange,
      'filters changed'() {
        for (const [, known] of jobs.entries()) known.isFiltered = true
      },
      'newest changed'() {
        isEndConfigured = true
      },
      killed: ({ process }) => {
        if ([...jobs.entries()].some(([, { underWay }]) => underWay?.process === process))
          note('refresh killed')
        onProcess(process)
      },
      ended: ({ process }) => onProcess(process),
    } satisfies { [Kind in Happening['kind']]?: (told: HappeningOf<Kind>) => unknown }),
    onRefreshed({ request: { job } }: PageInHand, at: string | null) {
      jobs.of(job).lastPageAt = at ?? isoNow()
    },
    /** A walk is complete. */
    onWalk(job: string, walk: WalkRow, before: WalkRow | null) {
      if (walk.kind !== 'full' || before?.status === 'complete') return
      const known = jobs.of(job)
      const settled = known.settled === '' ? walk.updated_at : walk.started_at
      if (settled > known.settled) known.settled = settled
    },
    isUnderWay: (job: string) => jobs.of(job).underWay !== null,
  }
}

function nameOf({ job }: Pick<HappeningOf<'claimed'>, 'job'>): string {
  return jobName(job.organization.id, job.collection.name)
}

function endOf(to: 'front' | 'end' | { place: number }): End | null {
  return to === 'front' ? 'first' : to === 'end' ? 'last' : null
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
