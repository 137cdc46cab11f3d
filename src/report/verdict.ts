import { grouped } from '../text.ts'
import type { JobStatus } from './job-status.ts'
import type { Status } from './status.ts'

/** What `status --check` exits with: 3 for a held token, else 5 for removals held back, else 1 for a list that failed or is overdue. */
export function checkExitCode(jobs: readonly JobStatus[]): Status['check_exit_code'] {
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
  const { jobs, daemon, timezone } = status
  const all = jobs.length === 1 ? 'the only list' : `all ${grouped(jobs.length)} lists`
  const [is, was] = jobs.length === 1 ? ['is', 'was'] : ['are', 'were']
  // Without a configuration nobody can say how old a list may be.
  if (timezone === null) return `${all} ${was} read whole`
  if (daemon.running === true) return `${all} ${is} well${daemonText(status)}`
  return `${all} ${is} up to date${daemonText(status)}`
}

/** What is said of one list, and of several. */
type Words = readonly [one: string, several: string]

/** The first trouble that there is. */
function troubleOf({ jobs, max_age: maxAge, fresh }: Facts): string | null {
  const troubles: [isMeant: (job: JobStatus) => boolean, ...words: Words][] = [
    // What is read at this moment has no next step, but what is held back waits for somebody.
    [(job) => job.next !== null || isHeldBack(job), 'needs attention', 'need attention'],
    [(job) => job.too_old === true, `is older than ${maxAge}`, `are older than ${maxAge}`],
    [(job) => job.too_stale === true, ...bothSay(`may lack what was added within ${fresh}`)],
    [(job) => job.configured && job.as_of === null, 'is not read whole yet', 'are not read whole yet'],
    [
      (job) => job.last_run_status === 'running' && job.running === null,
      'is being read, or was interrupted',
      'are being read, or were interrupted',
    ],
    [(job) => job.untrusted !== null, 'was read without certainty', 'were read without certainty'],
  ]
  for (const [index, [isMeant, ...words]] of troubles.entries()) {
    const number = jobs.filter(isMeant).length
    if (number > 0) return `${some(number, jobs.length, words)}${index === 0 ? reasonsOf(jobs) : ''}`
  }
  return null
}

function isHeldBack({ configured, removals_held: held }: JobStatus): boolean {
  return configured && held > 0
}

function bothSay(text: string): Words {
  return [text, text]
}

function some(number: number, of: number, [one, several]: Words): string {
  if (of === 1) return `the only list ${one}`
  return `${grouped(number)} of ${grouped(of)} lists ${number === 1 ? one : several}`
}

/** A held token is the reason for it then. */
function isLate({ held_since: held, overdue }: JobStatus): boolean {
  return held === null && overdue === true
}

/** The gravest reasons first. */
function reasonsOf(jobs: readonly JobStatus[]): string {
  const configured = jobs.filter((job) => job.configured)
  const count = (isMeant: (job: JobStatus) => boolean) => configured.filter(isMeant).length
  const reasons: [number, string][] = [
    [count((job) => job.held_since !== null), 'held for a refused token'],
    [count((job) => job.removals_held > 0), 'with removals held back'],
    [count((job) => job.held_since === null && job.last_run_status === 'failed'), 'failed'],
    [count((job) => isLate(job) && job.last_run_at === null), 'never read'],
    [count((job) => isLate(job) && job.last_run_at !== null), 'overdue'],
    [count((job) => job.last_run_status === 'interrupted'), 'interrupted'],
  ]
  const told = reasons.flatMap(([number, what]) =>
    number === 0 ? [] : [jobs.length === 1 ? what : `${grouped(number)} ${what}`],
  )
  return told.length === 0 ? '' : ` (${told.join(', ')})`
}

function daemonText({ daemon, timezone }: Facts): string {
  if (timezone === null) return ''
  const { processes } = daemon
  const lost = processes.filter(({ running }) => running === false).length
  if (daemon.running === true)
    return lost === 0 ? '' : `; ${grouped(lost)} of ${grouped(processes.length)} daemons died`
  if (daemon.running === null) return '; whether a daemon runs, this user cannot see'
  return daemon.processes.length > 0
    ? '; the daemon died: nothing is read by itself'
    : '; no daemon runs: nothing is read by itself'
}
