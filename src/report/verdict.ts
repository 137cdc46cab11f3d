import { grouped } from '../text.ts'
import type { JobStatus } from './job-status.ts'
import type { Status } from './status.ts'

/** What `status --check` exits with: 3 for a held token, else 5 for removals held back, else 1 for a list that failed or is overdue. */
export function checkExitCode(jobs: readonly JobStatus[]): number {
  const configured = jobs.filter((job) => job.configured)
  if (configured.some((job) => job.held_since !== null)) return 3
  if (configured.some((job) => job.removals_held > 0)) return 5
  return configured.some(isBad) ? 1 : 0
}

function isBad({ last_run_status: status, overdue }: JobStatus): boolean {
  return status === 'failed' || overdue === true
}

type Facts = Pick<Status, 'jobs' | 'max_age' | 'fresh' | 'daemon' | 'timezone'>

/** How things are, in a sentence. "Well" is only said if a `start` keeps it so. */
export function verdict(status: Facts): string {
  const trouble = troubleOf(status)
  if (trouble !== null) return `${trouble}${daemonText(status)}`
  // Without a configuration nobody can say how old a list may be.
  if (status.timezone === null) return `all ${status.jobs.length} lists were read whole`
  if (status.daemon.running === true) return `all ${status.jobs.length} lists are well`
  return `all ${status.jobs.length} lists are up to date${daemonText(status)}`
}

function troubleOf({ jobs, max_age: maxAge, fresh }: Facts): string | null {
  const count = (isMeant: (job: JobStatus) => boolean) => jobs.filter(isMeant).length
  const some = (number: number, what: string) =>
    number > 0 ? `${grouped(number)} of ${grouped(jobs.length)} lists ${what}` : null
  return (
    some(
      count((job) => job.next !== null),
      `need attention${reasonsOf(jobs)}`,
    ) ??
    some(
      count((job) => job.too_old === true),
      `are older than ${maxAge}`,
    ) ??
    some(
      count((job) => job.too_stale === true),
      `may lack what was added within ${fresh}`,
    ) ??
    some(
      count((job) => job.configured && job.as_of === null),
      'are not read whole yet',
    ) ??
    some(
      count((job) => job.last_run_status === 'running' && job.running === null),
      'are being read, or were interrupted',
    ) ??
    some(
      count((job) => job.untrusted !== null),
      'were read without certainty',
    )
  )
}

/** The gravest reasons first. */
function reasonsOf(jobs: readonly JobStatus[]): string {
  const configured = jobs.filter((job) => job.configured)
  const count = (isMeant: (job: JobStatus) => boolean) => configured.filter(isMeant).length
  const reasons: [number, string][] = [
    [count((job) => job.held_since !== null), 'held for a refused token'],
    [count((job) => job.removals_held > 0), 'with removals held back'],
    [count((job) => job.held_since === null && job.last_run_status === 'failed'), 'failed'],
    [count((job) => job.held_since === null && job.overdue === true), 'overdue'],
  ]
  const told = reasons.flatMap(([number, what]) => (number > 0 ? [`${grouped(number)} ${what}`] : []))
  return told.length === 0 ? '' : ` (${told.join(', ')})`
}

function daemonText({ daemon, timezone }: Facts): string {
  if (daemon.running === true || timezone === null) return ''
  if (daemon.running === null) return '; whether a daemon runs, this user cannot see'
  return daemon.processes.length > 0
    ? '; the daemon died: nothing is read by itself'
    : '; no daemon runs: nothing is read by itself'
}
