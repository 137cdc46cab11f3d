import { failingNote } from '../../report/job-lines.ts'
import type { JobStatus } from '../../report/job-status.ts'
import { counted, grouped, inWords, printable } from '../../text.ts'

export type Tone = 'good' | 'warn' | 'bad' | 'busy' | 'quiet'

export interface State {
  /** The worst is 0. */
  rank: number
  word: string
  tone: Tone
  /** What happened; null if nothing needs an explanation. */
  reason: string | null
}

function state(rank: number, word: string, tone: Tone, reason: string | null = null): State {
  return { rank, word, tone, reason }
}

/** How a list is, in a word or two. */
export function stateOf(job: JobStatus, now: number): State {
  if (!job.configured) return state(9, 'not configured', 'quiet')
  if (job.held_since !== null) return state(0, 'held', 'bad', heldReason(job))
  if (job.removals_held > 0) return state(1, 'removals held', 'bad', removalsReason(job))
  if (job.failing_since !== null)
    return state(2, job.running ? 'failing, tried again' : 'failed', 'bad', failingNote(job, now))
  if (job.overdue === true) return state(3, 'overdue', 'bad', overdueReason(job, now))
  if (job.running) return state(job.as_of === null ? 7 : 8, workWord(job), 'busy')
  if (job.next !== null)
    return state(4, job.as_of === null ? 'not read yet' : 'unfinished', 'warn', job.untrusted)
  if (job.as_of === null) return state(5, 'not read yet', 'warn')
  if (job.untrusted !== null)
    return state(6, 'uncertain', 'warn', `nothing is removed: ${printable(job.untrusted, 500)}`)
  return state(8, 'well', 'good')
}

function workWord({ work, retry_since: failsSince }: JobStatus): string {
  if (failsSince !== null) return 'asking again'
  return work === 'verify' ? 'being compared' : 'being read'
}

function heldReason({ held_since: since, held_reason: reason }: JobStatus): string {
  return `held since ${since}: ${printable(reason ?? 'its token was refused', 500)}`
}

function removalsReason({ removals_held: held, held_why: why, rows }: JobStatus): string {
  const reason = why === 'empty' ? 'the list came without items' : 'more than the brake lets go at once'
  return `${grouped(held)} of ${counted(rows, 'row')} left the list and are held back: ${reason}`
}

function overdueReason({ due_at: due }: JobStatus, now: number): string {
  return due === null ? 'never tried' : `due ${inWords(now - Date.parse(due))} ago, and nothing reads it`
}

/** The worst first, then what was read longest ago. */
export function worstFirst(jobs: readonly JobStatus[], now: number): { job: JobStatus; state: State }[] {
  return jobs
    .map((job) => ({ job, state: stateOf(job, now) }))
    .toSorted((a, b) => a.state.rank - b.state.rank || (a.job.as_of ?? '').localeCompare(b.job.as_of ?? ''))
}
