import { listenWith, type Tell } from '../happening.ts'
import type { ListPage } from '../list.ts'
import type { SimulatedProcess } from '../process.ts'
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
  updated_at: string
}

/**
 * A page whose answer a process has, until it is written, its run is over, or the process is gone. While one is written
 * the next may have come already.
 */
export interface PageInHand {
  request: Request
  page: ListPage
}

/** What the ledger finds when it looks at a job's walks. `before` is null for a walk that was not there. */
export interface LedgerListener {
  /** The page was committed, just now. */
  onSaved(inHand: PageInHand, walk: WalkRow, before: WalkRow): void
  onWalk(job: string, walk: WalkRow, before: WalkRow | null): void
}

const WALKS = `
  SELECT id, kind, origin, status, next_page, first_page, pages, rows_seen, total, passes, coverage, updated_at
  FROM sync_walks
  WHERE organization_id = ? AND collection = ?
  ORDER BY id`

/**
 * Looks at the walks of a job whenever they may have changed, above all after each commit of a process that has a page in
 * hand: a page counts as written when its walk has one more answer, and whatever belongs to it must stand there then.
 */
export function watchLedger(context: OracleContext, listener: LedgerListener): Tell {
  const { mirror, complain } = context
  const inHand = createStock((_process: SimulatedProcess) => new Map<string, PageInHand[]>())
  const known = createStock((_job: string) => new Map<number, WalkRow>())

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
    const page = process && inHand.of(process).get(job)?.shift()
    const count = row.pages - (old?.pages ?? 0)
    if (!page || !old || count !== 1) {
      complain(`walk ${row.id} counts ${count} more pages, and one that nobody had in hand`, job)
      return
    }
    listener.onSaved(page, row, old)
  }

  function lookAtHand(process: SimulatedProcess): void {
    for (const job of inHand.of(process).keys()) look(job, process)
  }

  /** What was not written by then never will be. */
  function lookAtEnd(name: string, process: SimulatedProcess): void {
    look(name, process)
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
      inHand.of(process).set(job, [...(inHand.of(process).get(job) ?? []), { request, page: outcome.page }])
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
