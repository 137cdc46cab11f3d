import type { Happening } from './happening.ts'
import { jobName } from './traffic.ts'

/** How often what happened, so that nobody takes quiet histories for sound ones. */
export type Counts = Record<string, number>

export interface Counter {
  tell(happening: Happening): void
  counts(): Counts
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

  function tell(happening: Happening): void {
    count(happening.kind)
    switch (happening.kind) {
      case 'claimed': {
        const job = jobName(happening.job.organization.id, happening.job.collection.name)
        if (taken.has(job)) count('taken over')
        taken.add(job)
        break
      }
      case 'releasing':
        taken.delete(jobName(happening.job.organization.id, happening.job.collection.name))
        break
      case 'run began':
        if (happening.resumed) count('walk gone on with')
        break
      case 'run finished':
        count('rows added', happening.record.rowsAdded)
        count('rows changed', happening.record.rowsChanged)
        count('pages in finished runs', happening.record.pages)
        break
      case 'delivered':
        count(
          happening.outcome.kind === 'answer' ? `answer ${happening.outcome.status}` : happening.outcome.kind,
        )
        break
      case 'killed':
        count(`killed: ${happening.where}`)
        break
      case 'job ended':
        count(`ended ${happening.result.error?.code ?? 'succeeded'}`)
        break
      default:
    }
  }

  return { tell, counts: () => counts }
}
