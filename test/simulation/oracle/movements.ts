import { listenWith } from '../happening.ts'
import { isListed, type ListFilters, type Movement, type SimulatedList } from '../list.ts'
import { jobName, type Outcome, type Request } from '../traffic.ts'
import { createStock, type OracleContext } from './context.ts'
import type { PageInHand, WalkRow } from './ledger.ts'

type Way = keyof Movement

/** What a walk could see, and what it saw. */
interface Reading {
  /** How often the list had moved when the walk asked for its first page; null before that. */
  since: number | null
  /** Listed from its first page until now; null before that was served. */
  throughout: Set<number> | null
  /** In which ways the list has moved meanwhile. */
  ways: Set<Way>
  keys: Set<number>
  pages: number
  /** Whether pages beyond its own need may be asked for, since the walk before saw the list move. */
  lastWalkMoved: boolean
}

/**
 * Promise 1: what was listed from start to end of a walk is in the mirror when the walk is trusted. Where items came and
 * others went meanwhile they may cancel out, and one be missed without a sign: that is counted. Where they only came, or
 * only went, nothing may be missed.
 */
export function watchMovements({ complain, note }: OracleContext, lists: ReadonlyMap<string, SimulatedList>) {
  const moves = new Map<string, number>()
  const readings = createStock((_job: string) => new Map<number, Reading>())
  /** The walk that is at work on a job, and its last complete full one's coverage. */
  const atWork = new Map<string, number>()
  const lastCoverage = new Map<string, string | null>()

  function readingOf(job: string, walk: number): Reading {
    const known = readings.of(job).get(walk)
    if (known) return known
    const last = lastCoverage.get(job)
    const lastWalkMoved = last === 'repaired' || last === 'drifted'
    const fresh = { since: null, throughout: null, ways: new Set<Way>(), keys: new Set<number>(), pages: 0 }
    const reading: Reading = { ...fresh, lastWalkMoved }
    readings.of(job).set(walk, reading)
    return reading
  }

  function current(job: string): Reading | null {
    const walk = atWork.get(job)
    return walk === undefined ? null : readingOf(job, walk)
  }

  function onServed({ job, filters, process, reader }: Request, outcome: Outcome): void {
    // What a dead process had asked for may be answered behind what the one that goes on asks for.
    if (!process.isAlive() || reader === 'refresh') return
    const reading = current(job)
    if (!reading || reading.pages > 0 || outcome.kind !== 'answer' || !outcome.page) return
    reading.throughout = new Set(idsOf(job, filters))
    reading.ways.clear()
  }

  function idsOf(job: string, filters: ListFilters): number[] {
    const items = lists.get(job)?.items ?? []
    return items.filter((item) => isListed(item, filters)).map(({ id }) => id)
  }

  function onChange(job: string, movement: Movement): void {
    const ways = (['added', 'removed', 'moved'] as const).filter((way) => movement[way].length > 0)
    if (ways.length === 0) return
    moves.set(job, (moves.get(job) ?? 0) + 1)
    for (const { ways: known, throughout } of readings.of(job).values()) {
      for (const way of ways) known.add(way)
      for (const id of movement.removed) throughout?.delete(id)
    }
  }

  function onSaved({ request, page }: PageInHand, { id }: WalkRow): void {
    const reading = readingOf(request.job, id)
    reading.pages++
    for (const item of page.items) reading.keys.add(item.id)
  }

  function onWalk(job: string, row: WalkRow, before: WalkRow | null): void {
    if (row.status !== 'complete' || before?.status === 'complete' || row.kind !== 'full') return
    lastCoverage.set(job, row.coverage)
    judge(job, row, readingOf(job, row.id))
  }

  function judge(job: string, { id, coverage }: WalkRow, { throughout, ways, keys }: Reading): void {
    if (ways.size > 0) note(`moved: ${coverage}`)
    if (coverage !== 'steady' && coverage !== 'repaired') return
    const missed = [...(throughout ?? [])].filter((key) => !keys.has(key))
    if (ways.size > 0) note('trusted walk of a list that moved')
    if (missed.length === 0) return
    note('trusted walk that missed something')
    const isOneWay = ways.size <= 1 && !ways.has('moved')
    if (isOneWay)
      complain(
        `walk ${id} is ${coverage} and has missed ${missed.join(', ')}, which were listed all the time`,
        job,
      )
  }

  /** Whether the list has stood still since the walk asked for its first page. */
  function isStill(job: string, walk: number): boolean {
    const { since } = readingOf(job, walk)
    return since === null || since === (moves.get(job) ?? 0)
  }

  const tell = listenWith({
    'run began'({ job: { organization, collection }, walk }) {
      const job = jobName(organization.id, collection.name)
      atWork.set(job, walk)
      readingOf(job, walk)
    },
    sent({ request: { job, reader } }) {
      const reading = current(job)
      if (reading && reader === 'walk') reading.since ??= moves.get(job) ?? 0
    },
    served: ({ request, outcome }) => onServed(request, outcome),
    'list changed': ({ job, movement }) => onChange(job, movement),
  })

  return {
    tell,
    onSaved,
    onWalk,
    isStill,
    /** Whether the walk asks for no page that a still list would not need: what is expected of its pages is then exact. */
    isPlain: (job: string, walk: number) => isStill(job, walk) && !readingOf(job, walk).lastWalkMoved,
  }
}

export type Movements = ReturnType<typeof watchMovements>
