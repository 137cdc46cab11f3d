import { type Happening, listenWith } from './happening.ts'
import type { SimulatedProcess } from './process.ts'
import { jobName } from './traffic.ts'

/** How often what happened, so that nobody takes quiet histories for sound ones. */
export type Counts = Record<string, number>

export interface Counter {
  tell(happening: Happening): void
  counts(): Counts
  /** Counts something that is no happening. */
  note(what: string): void
}

export function addCounts(sum: Counts, more: Counts): Counts {
  const names = new Set([...Object.keys(sum), ...Object.keys(more)])
  return Object.fromEntries([...names].toSorted().map((name) => [name, (sum[name] ?? 0) + (more[name] ?? 0)]))
}

/** What happened less often than this share of its floor, in words. */
export function rareOf(counts: Counts, floors: Counts, share: number): string[] {
  return Object.entries(floors)
    .map(([what, floor]) => ({ what, count: counts[what] ?? 0, least: Math.floor(floor * share) }))
    .filter(({ count, least }) => count < least)
    .map(({ what, count, least }) => `${what}: ${count} of at least ${least}`)
}

export function createCounter(): Counter {
  const counts: Counts = {}
  /** Jobs that somebody has not let go of. */
  const taken = new Set<string>()
  /** Who works on which job. */
  const atWork = new Map<string, SimulatedProcess>()
  let mostAtOnce = 1
  const living = new Set<SimulatedProcess>()
  let mostLiving = 1

  function count(name: string, times = 1): void {
    counts[name] = (counts[name] ?? 0) + times
  }

  /** Counts histories in which so many processes work on lists at once. */
  function onWork(job: string, process: SimulatedProcess): void {
    atWork.set(job, process)
    const atOnce = new Set(atWork.values()).size
    while (mostAtOnce < atOnce) count(`${++mostAtOnce} at work at once`)
  }

  function onEnd(process: SimulatedProcess): void {
    living.delete(process)
    for (const [job, one] of atWork) if (one === process) atWork.delete(job)
  }

  const tellMore = listenWith({
    started({ process }) {
      living.add(process)
      while (mostLiving < living.size) count(`${++mostLiving} processes at once`)
    },
    claimed({ process, job: { organization, collection } }) {
      const job = jobName(organization.id, collection.name)
      if (taken.has(job)) count('taken over')
      taken.add(job)
      onWork(job, process)
    },
    releasing({ job: { organization, collection } }) {
      const job = jobName(organization.id, collection.name)
      taken.delete(job)
      atWork.delete(job)
    },
    ended: ({ process }) => onEnd(process),
    'run began'({ resumed }) {
      if (resumed) count('walk gone on with')
    },
    'run finished'({ record }) {
      count('rows added', record.rowsAdded)
      count('rows changed', record.rowsChanged)
      count('pages in finished runs', record.pages)
    },
    delivered({ outcome }) {
      count(outcome.kind === 'answer' ? `answer ${outcome.status}` : outcome.kind)
    },
    killed({ process, where }) {
      onEnd(process)
      count(`killed: ${where}`)
    },
    'job ended'({ result }) {
      count(`ended ${result.error?.code ?? 'succeeded'}`)
    },
  })

  function tell(happening: Happening): void {
    count(happening.kind)
    tellMore(happening)
  }

  return { tell, counts: () => counts, note: (what) => count(what) }
}
