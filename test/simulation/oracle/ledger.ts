import { listenWith, type Tell } from '../happening.ts'
import type { ListPage } from '../list.ts'
import type { SimulatedProcess } from '../process.ts'
import type { Reader } from '../traffic.ts'
import { jobName, type Request } from '../traffic.ts'
import { createStock, type OracleContext, splitJob } from './context.ts'

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

/** What the ledger finds when it looks at a job's walks. `before` is null for a walk that was not there. */
export interface LedgerListener {
  /** The page was committed, just now. */
  onSaved(inHand: PageInHand, walk: WalkRow, before: WalkRow): void
  /** The page of a refresh was committed, just now. */
  onRefreshed(inHand: PageInHand, run: number): void
  onWalk(job: string, walk: WalkRow, before: WalkRow | null): void
}

const WALKS = `
  SELECT id, kind, origin, status, next_page, first_page, pages, rows_seen, total, passes, coverage, started_at, updated_at
  FROM sync_walks
  WHERE organization_id = ? AND collection = ?
  ORDER BY id`

/** The last ones are enough: nobody writes a page of an older one. */
const REFRESHES = `
  SELECT id, pages
  FROM sync_runs
  WHERE organization_id = ? AND collection = ? AND trigger = 'refresh' AND walk_id IS NULL
  ORDER BY id DESC LIMIT 2`

/**
 * Looks at the walks of a job whenever they may have changed, above all after each commit of a process that has a page in
 * hand: a page counts as written when its walk has one more answer, and whatever belongs to it must stand there then.
 */
export function watchLedger(context: OracleContext, listener: LedgerListener): Tell {
  const { now, wall, mirror, complain } = context
  const inHand = createStock((_process: SimulatedProcess) => new Map<string, PageInHand[]>())
  const known = createStock((_job: string) => new Map<number, WalkRow>())
  /** By refresh, its pages. */
  const refreshed = createStock((_job: string) => new Map<number, number>())

  function look(job: string, process: SimulatedProcess | null): void {
    const rows = mirror.rows(WALKS, ...splitJob(job)) as unknown as WalkRow[]
    const before = known.of(job)
    for (const row of rows) {
      const old = before.get(row.id) ?? null
      if (old && isSame(old, row)) continue
      before.set(row.id, row)
      if (row.pages !== (old?.pages ?? 0)) takePage(job, row, old, process)
      listener.onWalk(job, row, old)
    }
  }

  function takePage(job: string, row: WalkRow, old: WalkRow | null, process: SimulatedProcess | null): void {
    const page = process && takeInHand(process, job, 'walk')
    const count = row.pages - (old?.pages ?? 0)
    if (!page || !old || count !== 1) {
      complain(`walk ${row.id} counts ${count} more pages, and one that nobody had in hand`, job)
      return
    }
    listener.onSaved(page, row, old)
  }

  /** The oldest one of this reader. Whatever was asked for before it must be written already. */
  function takeInHand(process: SimulatedProcess, job: string, reader: Reader): PageInHand | undefined {
    const pages = inHand.of(process).get(job) ?? []
    const page = pages.find(({ request }) => request.reader === reader)
    if (!page) return undefined
    const [oldest] = pages
    if (oldest && oldest !== page)
      complain(`request ${page.request.number} is written before request ${oldest.request.number}`, job)
    inHand.of(process).set(
      job,
      pages.filter((one) => one !== page),
    )
    return page
  }

  function lookAtRefreshes(job: string, process: SimulatedProcess): void {
    const rows = mirror.rows(REFRESHES, ...splitJob(job)) as { id: number; pages: number }[]
    const before = refreshed.of(job)
    for (const { id, pages } of rows) {
      const count = pages - (before.get(id) ?? 0)
      before.set(id, pages)
      if (count <= 0) continue
      const page = takeInHand(process, job, 'refresh')
      if (page && count === 1) listener.onRefreshed(page, id)
      else complain(`refresh ${id} counts ${count} more pages, and one that nobody had in hand`, job)
    }
  }

  /** What a refresh has not written when it asks for more, or is over, it never will. */
  function dropRefreshed(process: SimulatedProcess, job: string): void {
    const pages = inHand.of(process).get(job) ?? []
    inHand.of(process).set(
      job,
      pages.filter(({ request }) => request.reader === 'walk'),
    )
  }

  function lookAt(job: string, process: SimulatedProcess): void {
    look(job, process)
    lookAtRefreshes(job, process)
  }

  function lookAtHand(process: SimulatedProcess): void {
    for (const job of inHand.of(process).keys()) lookAt(job, process)
  }

  /** What was not written by then never will be. */
  function lookAtEnd(name: string, process: SimulatedProcess): void {
    lookAt(name, process)
    inHand.of(process).delete(name)
  }

  function lookLast(process: SimulatedProcess): void {
    lookAtHand(process)
    inHand.of(process).clear()
  }

  return listenWith({
    delivered({ request, outcome }) {
      if (outcome.kind !== 'answer' || !outcome.page) return
      const { process, job } = request
      const came = { at: now(), wall: wall.now() }
      const pages = inHand.of(process).get(job) ?? []
      inHand.of(process).set(job, [...pages, { request, page: outcome.page, came }])
    },
    sent({ request: { process, job, reader } }) {
      if (reader === 'refresh') dropRefreshed(process, job)
    },
    'refresh finished'({ job: { organization, collection }, process }) {
      const job = jobName(organization.id, collection.name)
      lookAt(job, process)
      dropRefreshed(process, job)
    },
    committed: ({ process }) => lookAtHand(process),
    releasing: ({ job, process }) => lookAtEnd(jobName(job.organization.id, job.collection.name), process),
    'run began': ({ job, process }) => look(jobName(job.organization.id, job.collection.name), process),
    'run finished': ({ job, process }) => look(jobName(job.organization.id, job.collection.name), process),
    killed: ({ process }) => lookLast(process),
    ended: ({ process }) => lookLast(process),
  })
}

function isSame(a: WalkRow, b: WalkRow): boolean {
  return Object.entries(a).every(([name, value]) => b[name as keyof WalkRow] === value)
}
