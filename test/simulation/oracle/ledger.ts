import {
  type HappeningOf,
  knownOfJobs,
  listenWith,
  type Reader,
  type Request,
  type Tell,
} from '../happening.ts'
import type { ListPage } from '../list.ts'
import type { SimulatedProcess } from '../process.ts'
import type { OracleContext } from './context.ts'

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

/** What the ledger finds when it looks at a job's walks. */
export interface LedgerListener {
  /** The page was committed, just now: of a walk, or of a refresh (null). */
  onSaved(inHand: PageInHand, walk: WalkRow | null): void
  /** `before` is null for a walk that was not there. */
  onWalk(job: string, walk: WalkRow, before: WalkRow | null): void
}

const WALKS = `
  SELECT id, kind, origin, status, next_page, first_page, pages, rows_seen, total, passes, coverage, started_at, updated_at
  FROM sync_walks`

/** The last ones are enough: nobody writes a page of an older one. */
const REFRESHES = "AND trigger = 'refresh' AND walk_id IS NULL ORDER BY id DESC LIMIT 2"

/**
 * Looks at the walks of a job whenever they may have changed, above all after each commit of a process that has a page in
 * hand: a page counts as written when its walk has one more answer, and whatever belongs to it must stand there then.
 */
export function watchLedger({ now, wall, mirror, complain }: OracleContext, listener: LedgerListener): Tell {
  let hand: PageInHand[] = []
  /** Jobs of which a process has had a page, until it lets go of them. */
  const jobsOf = new Map<SimulatedProcess, Set<string>>()
  const walks = knownOfJobs(() => new Map<number, WalkRow>())
  /** By refresh, its pages. */
  const refreshes = knownOfJobs(() => new Map<number, number>())

  function look({ job, process }: { job: string; process: SimulatedProcess }): void {
    const known = walks.of(job)
    for (const row of mirror.ofJob(job, WALKS, 'ORDER BY id') as unknown as WalkRow[]) {
      const before = known.get(row.id) ?? null
      if (before && JSON.stringify(before) === JSON.stringify(row)) continue
      known.set(row.id, row)
      const page = takePages(job, process, 'walk', row.pages - (before?.pages ?? 0), row.id)
      if (page) listener.onSaved(page, row)
      listener.onWalk(job, row, before)
    }
    const pagesOf = refreshes.of(job)
    for (const row of mirror.ofJob(job, 'SELECT id, pages FROM sync_runs', REFRESHES)) {
      const [id, pages] = [Number(row.id), Number(row.pages)]
      const page = takePages(job, process, 'refresh', pages - (pagesOf.get(id) ?? 0), id)
      pagesOf.set(id, pages)
      if (page) listener.onSaved(page, null)
    }
  }

  /** The oldest one of this reader. Whatever was asked for before it must be written already. */
  function takePages(job: string, process: SimulatedProcess, reader: Reader, count: number, id: number) {
    if (count === 0) return null
    const own = hand.filter(({ request }) => request.process === process && request.job === job)
    const page = own.find(({ request }) => request.reader === reader)
    if (!page || count !== 1) {
      complain(`${reader} ${id} counts ${count} more pages, and one that nobody had in hand`, job)
      return null
    }
    if (page !== own[0]) complain(`request ${page.request.number} is written before an earlier one`, job)
    hand = hand.filter((one) => one !== page)
    return page
  }

  function lookAtAll(process: SimulatedProcess): void {
    for (const job of jobsOf.get(process) ?? []) look({ job, process })
  }

  /** What was not written by then never will be. */
  function drop(isLost: (request: Request) => boolean): void {
    hand = hand.filter(({ request }) => !isLost(request))
  }

  function dropRefreshed(process: SimulatedProcess, job: string): void {
    drop((one) => one.process === process && one.job === job && one.reader === 'refresh')
  }

  function onEnd({ process }: HappeningOf<'killed' | 'ended'>): void {
    lookAtAll(process)
    jobsOf.delete(process)
    drop((request) => request.process === process)
  }

  return listenWith({
    delivered({ request, outcome }) {
      if (outcome.kind !== 'answer' || !outcome.page) return
      const { process, job } = request
      hand.push({ request, page: outcome.page, came: { at: now(), wall: wall.now() } })
      jobsOf.set(process, (jobsOf.get(process) ?? new Set()).add(job))
    },
    // What a refresh has not written when it asks for more, or is over, it never will.
    sent({ request: { process, job, reader } }) {
      if (reader === 'refresh') dropRefreshed(process, job)
    },
    'refresh finished'({ job, process }) {
      look({ job, process })
      dropRefreshed(process, job)
    },
    committed: ({ process }) => lookAtAll(process),
    releasing({ job, process }) {
      look({ job, process })
      jobsOf.get(process)?.delete(job)
      drop((request) => request.process === process && request.job === job)
    },
    'run began': look,
    'run finished': look,
    killed: onEnd,
    ended: onEnd,
  })
}
