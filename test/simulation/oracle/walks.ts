import { knownOfJobs, listenWith, type Request } from '../happening.ts'
import { listedItems, type ListFilters, type ListPage, type Movement, type SimulatedList } from '../list.ts'
import type { OracleContext } from './context.ts'
import type { Finding, PageInHand, WalkRow } from './ledger.ts'

/** Between the choice of a walk and its run lies what it takes to recall what the walk has seen, with its rests. */
const RECALL_MS = 100

type Walk = ReturnType<typeof newWalk>

function newWalk(row: WalkRow, isWary: boolean) {
  return {
    row,
    /** Written, and items on them. */
    pages: new Set<number>(),
    keys: new Set<number>(),
    /** The last page of the list that an answer named, and the farthest one whose answer has reached a process that lived. */
    lastPage: 0,
    farthest: 0,
    /** Whether the list's end was reached, and the one page asked for again that any still list is asked for. */
    isRead: false,
    isChecked: false,
    /** How often the list had moved when the walk asked for its first page; null before that. */
    since: null as number | null,
    /** Listed from its first page until now; null before that was served. */
    throughout: null as Set<number> | null,
    /** In which ways the list has moved meanwhile. */
    ways: new Set<keyof Movement>(),
    /** Whether more pages than a still list needs may be asked for, since the walk before saw the list move. */
    isWary,
  }
}

const newJob = () => ({
  walks: new Map<number, Walk>(),
  /** The one that is at work, the last request of its run, and its answer where that was a page. */
  current: null as Walk | null,
  last: null as Request | null,
  answered: null as ListPage | null,
  moves: 0,
  lastCoverage: null as string | null,
})
type JobKnowledge = ReturnType<typeof newJob>

/**
 * Promise 1: what was listed from start to end of a walk is in the mirror when the walk is trusted. Where items came and others went
 * meanwhile they may cancel out, and one be missed without a sign: that is counted. Where they only came, or only went, nothing may be
 * missed.
 *
 * Promise 5, on lists that stand still: no page is skipped, and after an interruption at most the page that was being written and the one on
 * its way are asked for again, beside the last one that was written. What it demands of the order of pages is true of such lists alone.
 */
export function watchWalks(context: OracleContext, lists: ReadonlyMap<string, SimulatedList>) {
  const { setting, complain, note, wall } = context
  const { resumeWithin } = setting.config
  const jobs = knownOfJobs(newJob)
  /** Whether the filters were ever changed: a walk of another list than the configured one is given up. */
  let isFiltered = false

  const idsOf = (job: string, filters: ListFilters) =>
    listedItems(lists.get(job), filters).map(({ id }) => id)

  function onSaved({ request: { job }, page }: PageInHand, row: WalkRow): void {
    const known = jobs.of(job)
    const walk = walkOf(known, row)
    walk.pages.add(page.number)
    walk.lastPage = page.lastPage
    for (const { id } of page.items) walk.keys.add(id)
    const next = walk.isRead ? null : page.next
    if (row.next_page !== next && isPlain(known, walk))
      complain(`the checkpoint of walk ${row.id} is page ${row.next_page}, not ${next}`, job)
    walk.isChecked ||= walk.isRead
    walk.isRead ||= page.next === null
    if (row.rows_seen !== walk.keys.size)
      complain(`walk ${row.id} has seen ${walk.keys.size} items and says ${row.rows_seen}`, job)
    if (row.total !== page.total) complain(`walk ${row.id} says a total of ${row.total}`, job)
  }

  function onWalk(job: string, row: WalkRow, before: WalkRow | null): void {
    const known = jobs.of(job)
    const walk = walkOf(known, row)
    if (row.passes !== 1 && isStill(known, walk))
      complain(`walk ${row.id} reads a list again that stood still`, job)
    if (before && before.started_at !== row.started_at) complain(`walk ${row.id} begins again`, job)
    const hasPage = before?.pages !== row.pages || before.next_page === row.next_page
    if (!hasPage && row.status === 'open' && isStill(known, walk))
      complain(`the checkpoint of walk ${row.id} moves without a page`, job)
    if (row.status === 'abandoned' && before?.status === 'open') onAbandoned(job, known, before)
    const open = [...known.walks.values()].filter(
      (one) => one.row.status === 'open' && one.row.origin === 'sync',
    )
    if (open.length > 1)
      complain(`two walks of sync are open: ${open.map((one) => one.row.id).join(', ')}`, job)
  }

  function onComplete(job: string, row: WalkRow): void {
    const known = jobs.of(job)
    const walk = walkOf(known, row)
    const { pages, lastPage, ways, throughout, keys } = walk
    const { id, kind, coverage, first_page: firstPage } = row
    if (pages.size === 0) complain(`walk ${id} is complete without any page`, job)
    if (isStill(known, walk)) {
      for (let page = firstPage; page <= lastPage; page++)
        if (!pages.has(page)) complain(`walk ${id} is complete without page ${page}`, job)
      if (coverage !== (kind === 'full' ? 'steady' : null))
        complain(`walk ${id} of a still list is ${coverage}`, job)
    }
    if (kind !== 'full') return
    known.lastCoverage = coverage
    if (ways.size > 0) note(`moved: ${coverage}`)
    if (coverage !== 'steady' && coverage !== 'repaired') return
    const missed = [...(throughout ?? [])].filter((key) => !keys.has(key))
    if (missed.length === 0) return
    note('trusted walk that missed something')
    if (ways.size <= 1 && !ways.has('moved'))
      complain(
        `walk ${id} is ${coverage} and has missed ${missed.join(', ')}, which were listed all the time`,
        job,
      )
  }

  /** A sync goes on with its walk unless that has stood still for too long, or a full backfill took its place. */
  function onAbandoned(job: string, { walks }: JobKnowledge, { id, origin, updated_at: at }: WalkRow): void {
    const stoodStill = wall() - Date.parse(at) > resumeWithin
    const isReplaced = [...walks.values()].some(
      ({ row, pages }) => row.origin === 'backfill' && row.kind === 'full' && pages.size > 0,
    )
    if (origin === 'sync' && !isFiltered && !stoodStill && !isReplaced)
      complain(`walk ${id} is abandoned for no reason`, job)
  }

  return listenWith<Finding>({
    'filters changed'() {
      isFiltered = true
    },
    sent({ request }) {
      if (request.reader === 'refresh') return
      const { number, job, page } = request
      const known = jobs.of(job)
      const { current: walk, last, answered } = known
      if (!walk) {
        complain(`request ${number} belongs to no run`, job)
        return
      }
      walk.since ??= known.moves
      const fits =
        !isPlain(known, walk) || (last ? followsUp(page, last, answered, walk) : begins(page, walk))
      const { id, next_page: next } = walk.row
      if (!fits)
        complain(
          `request ${number} asks for page ${page}; walk ${id} goes on at page ${next}, and has had ${walk.farthest}`,
          job,
        )
      known.last = request
      known.answered = null
    },
    served({ request, outcome }) {
      const { current: walk } = jobs.of(request.job)
      // What a dead process had asked for may be answered behind what the one that goes on asks for.
      if (!walk || walk.pages.size > 0 || request.reader === 'refresh' || !request.process.isAlive()) return
      if (outcome.kind !== 'answer' || !outcome.page) return
      walk.throughout = new Set(idsOf(request.job, request.filters))
      walk.ways.clear()
    },
    delivered({ request, outcome }) {
      const known = jobs.of(request.job)
      if (known.last !== request || outcome.kind !== 'answer' || !outcome.page || !known.current) return
      known.answered = outcome.page
      known.current.farthest = Math.max(known.current.farthest, request.page)
    },
    'list changed'({ job, movement }) {
      const known = jobs.of(job)
      const ways = (['added', 'removed', 'moved'] as const).filter((way) => movement[way].length > 0)
      if (ways.length === 0) return
      known.moves++
      for (const walk of known.walks.values()) {
        for (const way of ways) walk.ways.add(way)
        for (const id of movement.removed) walk.throughout?.delete(id)
      }
    },
    'run began'({ job, walk: id, resumed }) {
      const known = jobs.of(job)
      const current = known.walks.get(id) ?? null
      Object.assign(known, { current, last: null, answered: null })
      const { origin, updated_at: at } = current?.row ?? {}
      if (resumed && origin === 'sync' && wall() - Date.parse(at ?? '') > resumeWithin + RECALL_MS)
        complain(`walk ${id} has stood still since ${at}, and goes on`, job)
    },
    saved({ inHand, walk }) {
      if (walk) onSaved(inHand, walk)
    },
    'walk replaced'({ job, walk: { id, pages } }) {
      jobs.of(job).walks.delete(id)
      if (pages > 0) complain(`walk ${id} has read a page, and does not go on`, job)
    },
    'walk changed': ({ job, walk, before }) => onWalk(job, walk, before),
    'walk complete': ({ job, walk: row }) => onComplete(job, row),
  })
}

function walkOf({ walks, lastCoverage }: JobKnowledge, row: WalkRow): Walk {
  const walk = walks.get(row.id) ?? newWalk(row, lastCoverage === 'repaired' || lastCoverage === 'drifted')
  walks.set(row.id, walk)
  walk.row = row
  return walk
}

function isStill({ moves }: JobKnowledge, { since }: Walk): boolean {
  return since === null || since === moves
}

/** Whether the walk asks for no page that a still list would not need: what is expected of its pages is then exact. */
function isPlain(known: JobKnowledge, walk: Walk): boolean {
  return isStill(known, walk) && !walk.isWary
}

/** The same page until an answer comes, then the next one. */
function followsUp(page: number, last: Request, answered: ListPage | null, walk: Walk): boolean {
  if (!answered) return page === last.page
  if (!walk.isRead && answered.next !== null) return page === answered.next
  return isCheck(page, { ...walk, lastPage: answered.lastPage })
}

/**
 * The last page that was written is asked for again, to see that the list stands where it stood. Behind it, two may have
 * been answered already: the one that was being written, and the one on its way.
 */
function begins(page: number, walk: Walk): boolean {
  const { row, farthest, isRead, pages } = walk
  if (isRead) return isCheck(page, walk)
  const next = row.next_page ?? 0
  return page >= row.first_page && page === (pages.size > 0 ? next - 1 : next) && page >= farthest - 2
}

/** A list of several pages that was read to its end is asked for one of them again, once. */
function isCheck(page: number, { row, lastPage, isChecked }: Walk): boolean {
  return (
    row.kind === 'full' && lastPage > 1 && !isChecked && page === Math.max(1, Math.round(0.37 * lastPage))
  )
}
