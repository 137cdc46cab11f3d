import { nextFireAfter } from '../../../schedule/cron.ts'
import type { ScheduledJob } from '../../../schedule/scheduler.ts'
import { grouped, inWords, printable } from '../../../text.ts'

const YEAR_MS = 366 * 86_400_000

type Planned = Pick<ScheduledJob, 'name' | 'expression' | 'timezone'>

/** The line of a service at rest. It searches the next time only when the last one found has passed. */
export function nextRunText(jobs: readonly Planned[], now: () => number): () => string {
  let next: { at: number; names: string[] } | null = null
  return () => {
    if (next === null || next.at <= now()) next = nextRun(jobs, now())
    return restLine(next, now())
  }
}

/** The jobs that run next by their schedules, and when (epoch milliseconds; Infinity: not within a year). */
export function nextRun(jobs: readonly Planned[], now: number): { at: number; names: string[] } {
  const times = new Map<string, number>()
  const timeOf = ({ expression, timezone }: Planned) => {
    const name = `${timezone} ${expression}`
    const at =
      times.get(name) ?? nextFireAfter(expression, timezone, now, now + YEAR_MS) ?? Number.POSITIVE_INFINITY
    times.set(name, at)
    return at
  }
  const at = Math.min(...jobs.map(timeOf))
  return { at, names: jobs.filter((job) => timeOf(job) === at).map(({ name }) => name) }
}

/** `at rest; next run in 6 hours (2026-11-23T03:00:00Z): acme orders and 19 more` */
export function restLine({ at, names }: { at: number; names: readonly string[] }, now: number): string {
  const [first = '', ...others] = names
  if (!Number.isFinite(at)) return 'at rest; no run within a year'
  const more = others.length === 0 ? '' : ` and ${grouped(others.length)} more`
  const time = new Date(at).toISOString().replace('.000Z', 'Z')
  return `at rest; next run in ${inWords(at - now)} (${time}): ${printable(first, 60)}${more}`
}
