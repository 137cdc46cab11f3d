import {
  type Happening,
  type HappeningOf,
  knownOfJobs,
  listenWith,
  type Reader,
  type Request,
} from '../happening.ts'
import type { ListPage } from '../list.ts'
import type { SimulatedProcess } from '../process.ts'
import type { OracleContext } from './context.ts'
import type { Gone, Versions, WrittenPage } from './versions.ts'

/** A walk as the mirror's readers see it. */
export interface WalkRow {
  id: number
  kind: 'full' | 'partial'
  origin: 'sync' | 'backfill'
  status: 'open' | 'complete' | 'abandoned'
  next_page: number | null
  first_page: number
  pages: number
  rows_seen: number
  total: number | null
  passes: number
  coverage: string | null
  started_at: string
  updated_at: string
}

/**
 * A page whose answer a process has, until it is written, its run is over, or the process is gone. While one is written
 * the next may have come already.
 */
export interface PageInHand {
  request: Request
  page: ListPage
  /** When it came, by the clock and by that of the processes. Epoch milliseconds. */
  came: { at: number; wall: number }
}

/** What the oracle is told, and what it finds out itself. */
export type Finding =
  | Exclude<Happening, { kind: 'killed' | 'ended' }>
  /** A process was killed, or has ended. */
  | { kind: 'over'; process: SimulatedProcess }
  /** The page was committed, just now: of a walk, or of a refresh (null). Then: what it has written. */
  | { kind: 'saved'; inHand: PageInHand; walk: WalkRow | null }
  | { kind: 'written'; request: Request; walk: WalkRow | null; written: WrittenPage }
  /** `before` is null for a walk that was not there. */
  | { kind: 'walk changed'; process: SimulatedProcess; job: string; walk: WalkRow; before: WalkRow | null }
  /** Another one has taken the place of an open walk. */
  | { kind: 'walk replaced'; job: string; walk: WalkRow }
  /** After what it has removed is `gone`. */
  | { kind: 'walk complete'; job: string; walk: WalkRow }
  | { kind: 'gone'; job: string; gone: readonly Gone[] }

const WALKS = `
  SELECT id, kind, _origin AS origin, status, next_page, _first_page AS first_page, pages, rows_seen, total, passes, coverage, started_at, updated_at
  FROM sync_walks`

/** The last ones are enough: nobody writes a page of an older one. */
const REFRESHES = "AND trigger = 'refresh' AND walk_id IS NULL ORDER BY id DESC LIMIT 2"

/**
 * Looks at the walks of a job whenever they may have changed, above all after each commit of a process that has taken it: a page counts as
 * written when its walk has one more answer, and whatever belongs to it must stand there then.
 */
export function watchLedger(
  { now, wall, mirror, complain }: OracleContext,
  versions: Versions,
  tell: (found: Finding) => void,
) {
  let hand: PageInHand[] = []
  /** Jobs that a process has taken, until it lets go of them. */
  const jobsOf = new Map<SimulatedProcess, Set<string>>()
  /** By walk, its line; by refresh, its pages. */
  const known = knownOfJobs(() => ({
    walks: new Map<number, WalkRow>(),
    refreshes: new Map<number, number>(),
  }))

  function look(process: SimulatedProcess, job: string): void {
    const { walks, refreshes } = known.of(job)
    const rows = mirror.ofJob(job, WALKS, 'ORDER BY id') as unknown as WalkRow[]
    for (const walk of walks.values()) {
      if (walk.status !== 'open' || rows.some(({ id }) => id === walk.id)) continue
      walks.delete(walk.id)
      tell({ kind: 'walk replaced', job, walk })
    }
    for (const walk of rows) {
      const before = walks.get(walk.id) ?? null
      if (before && JSON.stringify(before) === JSON.stringify(walk)) continue
      walks.set(walk.id, walk)
      const inHand = takePage(process, job, 'walk', walk.pages - (before?.pages ?? 0))
      if (inHand) tell({ kind: 'saved', inHand, walk })
      tell({ kind: 'walk changed', process, job, walk, before })
      if (walk.status !== 'complete' || before?.status === 'complete') continue
      takeGone(job)
      tell({ kind: 'walk complete', job, walk })
    }
    for (const row of mirror.ofJob(job, 'SELECT id, pages FROM sync_runs', REFRESHES)) {
      const [id, pages] = [Number(row.id), Number(row.pages)]
      const inHand = takePage(process, job, 'refresh', pages - (refreshes.get(id) ?? 0))
      refreshes.set(id, pages)
      if (inHand) tell({ kind: 'saved', inHand, walk: null })
    }
  }

  /** The oldest one of this reader, of which a line counts so many more. Whatever was asked for before it must be written already. */
  function takePage(process: SimulatedProcess, job: string, reader: Reader, count: number) {
    if (count === 0) return null
    const own = hand.filter(({ request }) => request.process === process && request.job === job)
    const page = own.find(({ request }) => request.reader === reader)
    if (!page || count !== 1) {
      complain(`a ${reader} counts ${count} more pages, and one that nobody had in hand`, job)
      return null
    }
    if (page !== own[0]) complain(`request ${page.request.number} is written before an earlier one`, job)
    hand = hand.filter((one) => one !== page)
    return page
  }

  /** Rows are only ever removed while a run of their job is under way. */
  function takeGone(job: string): void {
    const gone = versions.takeGone(job)
    if (gone.length > 0) tell({ kind: 'gone', job, gone })
  }

  function lookAtAll(process: SimulatedProcess): void {
    for (const job of jobsOf.get(process) ?? []) look(process, job)
  }

  /** What a process has not written by then it never will. */
  function drop(process: SimulatedProcess, isLost: (request: Request) => boolean = () => true): void {
    hand = hand.filter(({ request }) => request.process !== process || !isLost(request))
  }

  const lookAt = ({ process, job }: HappeningOf<'run began' | 'run finished'>) => look(process, job)

  const hear = listenWith<Finding>({
    claimed({ process, job }) {
      jobsOf.set(process, (jobsOf.get(process) ?? new Set()).add(job))
    },
    delivered({ request, outcome }) {
      if (outcome.kind !== 'answer' || !outcome.page) return
      hand.push({ request, page: outcome.page, came: { at: now(), wall: wall() } })
    },
    // What a refresh has not written when it asks for more, or is over, it never will.
    sent({ request: { process, job, reader } }) {
      if (reader === 'refresh') drop(process, (one) => one.job === job && one.reader === reader)
    },
    'refresh finished'({ process, job }) {
      look(process, job)
      drop(process, (one) => one.job === job && one.reader === 'refresh')
    },
    committed: ({ process }) => lookAtAll(process),
    releasing({ process, job }) {
      look(process, job)
      jobsOf.get(process)?.delete(job)
      drop(process, (one) => one.job === job)
    },
    'run began': lookAt,
    'run finished'(told) {
      lookAt(told)
      takeGone(told.job)
    },
    over({ process }) {
      lookAtAll(process)
      jobsOf.delete(process)
      drop(process)
    },
  })
  return { hear, takeGone }
}
