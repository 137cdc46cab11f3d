import { type Happening, listenWith } from './happening.ts'
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

export function createCounter(): Counter {
  const counts: Counts = {}
  /** Jobs that somebody has not let go of. */
  const taken = new Set<string>()

  function count(name: string, times = 1): void {
    counts[name] = (counts[name] ?? 0) + times
  }

  const tellMore = listenWith({
    claimed({ job: { organization, collection } }) {
      const job = jobName(organization.id, collection.name)
      if (taken.has(job)) count('taken over')
      taken.add(job)
    },
    releasing({ job: { organization, collection } }) {
      taken.delete(jobName(organization.id, collection.name))
    },
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
    killed({ where }) {
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
