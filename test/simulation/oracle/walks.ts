import { listenWith } from '../happening.ts'
import type { ListPage } from '../list.ts'
import { jobName, type Request } from '../traffic.ts'
import { createStock, type OracleContext } from './context.ts'
import type { PageInHand, WalkRow } from './ledger.ts'
import type { Movements } from './movements.ts'

/** Between the choice of a walk and its run lies what it takes to recall what the walk has seen, with its rests. */
const RECALL_MS = 100

interface WalkKnowledge {
  firstPage: number
  row: WalkRow
  /** Written, and items on them. */
  pages: number[]
  keys: Set<number>
  /** The last page of the list that an answer named. */
  lastPage: number
  /** Whether the list's end was reached, and the one page asked for again that any still list is asked for. */
  isRead: boolean
  isChecked: boolean
  /** The farthest page whose answer has reached a process that lived. */
  farthest: number
}

interface RunAtWork {
  walk: number
  /** Of this run; null until its first. */
  last: Request | null
  /** The last one's answer, where that was a page; it may be written only after the next request has left. */
  answered: ListPage | null
}

/**
 * Promise 5 on lists that stand still: no page is skipped, and after an interruption at most the page that was being
 * written and the one on its way are asked for again, beside the last one that was written.
 * What it demands of the order of pages is true of such lists alone.
 */
export function watchStillWalks({ wall: { now }, setting, complain }: OracleContext, movements: Movements) {
  const walks = createStock((_job: string) => new Map<number, WalkKnowledge>())
  const runs = new Map<string, RunAtWork>()
  /** Whether the filters were ever changed: a walk of another list than the configured one is given up. */
  let isFiltered = false

  function onSent(request: Request): void {
    if (request.reader === 'refresh') return
    const run = runs.get(request.job)
    const walk = run && walks.of(request.job).get(run.walk)
    if (!run || !walk) {
      complain(`request ${request.number} belongs to no run`, request.job)
      return
    }
    const { job } = request
    const isPlain = movements.isPlain(job, run.walk)
    const fits = !isPlain || (run.last ? followsUp(request, run.last, run, walk) : begins(request, walk))
    if (!fits) {
      complain(
        `request ${request.number} asks for page ${request.page}; ` +
          `walk ${walk.row.id} goes on at page ${walk.row.next_page}, and has had ${walk.farthest}`,
        request.job,
      )
    }
    run.last = request
    run.answered = null
  }

  function followsUp(request: Request, last: Request, { answered }: RunAtWork, walk: WalkKnowledge): boolean {
    if (!answered) return request.page === last.page
    if (!walk.isRead && answered.next !== null) return request.page === answered.next
    return isCheck(request, { ...walk, lastPage: answered.lastPage })
  }

  function onDelivered(request: Request, page: ListPage | null): void {
    const run = runs.get(request.job)
    const walk = run && walks.of(request.job).get(run.walk)
    if (run?.last !== request || !walk || !page) return
    run.answered = page
    walk.farthest = Math.max(walk.farthest, request.page)
  }

  /** `at`: when it was to be written. */
  function onSaved({ request, page }: PageInHand, row: WalkRow, at: string): void {
    const { job } = request
    const walk = walks.of(job).get(row.id)
    if (!walk) return
    walk.pages.push(page.number)
    walk.lastPage = page.lastPage
    for (const { id } of page.items) walk.keys.add(id)
    const next = walk.isRead ? null : page.next
    if (row.next_page !== next && movements.isPlain(job, row.id))
      complain(`the checkpoint of walk ${row.id} is page ${row.next_page}, not ${next}`, job)
    walk.isChecked ||= walk.isRead
    walk.isRead ||= page.next === null
    if (row.rows_seen !== walk.keys.size)
      complain(`walk ${row.id} has seen ${walk.keys.size} items and says ${row.rows_seen}`, job)
    if (row.total !== page.total) complain(`walk ${row.id} says a total of ${row.total}`, job)
    if (row.updated_at !== at) complain(`walk ${row.id} was written at ${row.updated_at}, not ${at}`, job)
  }

  function onWalk(job: string, row: WalkRow, before: WalkRow | null): void {
    const walk = walks.of(job).get(row.id)
    if (walk) walk.row = row
    else walks.of(job).set(row.id, newKnowledge(row))
    if (row.passes !== 1 && movements.isStill(job, row.id))
      complain(`walk ${row.id} reads a list again that stood still`, job)
    const isMoved = before?.pages === row.pages && before.next_page !== row.next_page
    if (isMoved && row.status === 'open' && movements.isStill(job, row.id))
      complain(`the checkpoint of walk ${row.id} moves without a page`, job)
    if (row.status === 'complete') onComplete(job, row)
    if (row.status === 'abandoned' && before?.status === 'open') onAbandoned(job, before)
    const open = [...walks.of(job).values()].filter(
      (one) => one.row.status === 'open' && one.row.origin === 'sync',
    )
    if (open.length > 1)
      complain(`two walks of sync are open: ${open.map((one) => one.row.id).join(', ')}`, job)
  }

  function onComplete(job: string, row: WalkRow): void {
    const walk = walks.of(job).get(row.id)
    const { firstPage = 1, lastPage = 0, pages = [] } = walk ?? {}
    if (pages.length === 0) complain(`walk ${row.id} is complete without any page`, job)
    if (!movements.isStill(job, row.id)) return
    for (let page = firstPage; page <= lastPage; page++)
      if (!pages.includes(page)) complain(`walk ${row.id} is complete without page ${page}`, job)
    const coverage = row.kind === 'full' ? 'steady' : null
    if (row.coverage !== coverage) complain(`walk ${row.id} of a still list is ${row.coverage}`, job)
  }

  function onResumed(job: string, id: number): void {
    const row = walks.of(job).get(id)?.row
    if (
      row?.origin !== 'sync' ||
      now() - Date.parse(row.updated_at) <= setting.config.resumeWithin + RECALL_MS
    )
      return
    complain(`walk ${id} has stood still since ${row.updated_at}, and goes on`, job)
  }

  /** A sync goes on with its walk unless that has stood still for too long, or a full backfill took its place. */
  function onAbandoned(job: string, { id, origin, updated_at }: WalkRow): void {
    if (origin === 'backfill') return
    const stoodStill = now() - Date.parse(updated_at) > setting.config.resumeWithin
    if (isFiltered) return
    const isReplaced = [...walks.of(job).values()].some(
      ({ row, pages }) => row.origin === 'backfill' && row.kind === 'full' && pages.length > 0,
    )
    if (!stoodStill && !isReplaced) complain(`walk ${id} is abandoned for no reason`, job)
  }

  const tell = listenWith({
    'filters changed'() {
      isFiltered = true
    },
    sent: ({ request }) => onSent(request),
    delivered({ request, outcome }) {
      if (outcome.kind === 'answer') onDelivered(request, outcome.page)
    },
    'run began'({ job: { organization, collection }, walk, resumed }) {
      const job = jobName(organization.id, collection.name)
      runs.set(job, { walk, last: null, answered: null })
      if (resumed) onResumed(job, walk)
    },
  })

  return { tell, onSaved, onWalk }
}

function newKnowledge(row: WalkRow): WalkKnowledge {
  return {
    firstPage: row.first_page,
    row,
    pages: [],
    keys: new Set(),
    lastPage: 0,
    isRead: false,
    isChecked: false,
    farthest: 0,
  }
}

/**
 * The last page that was written is asked for again, to see that the list stands where it stood. Behind it, two may have
 * been answered already: the one that was being written, and the one on its way.
 */
function begins(request: Request, walk: WalkKnowledge): boolean {
  const { page } = request
  const { row, firstPage, farthest, isRead, pages } = walk
  if (isRead) return isCheck(request, walk)
  const next = row.next_page ?? 0
  return page >= firstPage && page === (pages.length > 0 ? next - 1 : next) && page >= farthest - 2
}

/** A list of several pages that was read to its end is asked for one of them again, once. */
function isCheck({ page }: Request, { row, lastPage, isChecked }: WalkKnowledge): boolean {
  return (
    row.kind === 'full' && lastPage > 1 && !isChecked && page === Math.max(1, Math.round(0.37 * lastPage))
  )
}
