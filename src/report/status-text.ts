import type { QueueDepth } from '../store/postgres/read/queue.ts'
import { counted, grouped, inWords } from '../text.ts'
import { listsText } from './lists-text.ts'
import type { Status } from './status.ts'

/** What users type. */
interface Typed {
  /** ` --config FILE` as it was typed, or nothing. */
  configOption: string
  /** How to ask this file. */
  ask: string
}

const TYPED: Typed = { configOption: '', ask: 'admin-mirror query' }

/** How things are, the lists, and what to do next. */
export function statusText(status: Status, { configOption, ask }: Typed = TYPED): string {
  const lines = [`mirror: ${status.database}`, daemonLine(status, configOption)]
  if (status.queue) lines.push(`queue: ${queueText(status.queue)}`)
  lines.push(status.verdict, '', ...listsText(status, ask))
  if (status.waiting_until !== null)
    lines.push('', `the rate limit asks for a pause until ${status.waiting_until}`)
  if (status.advice.length > 0) lines.push('', ...status.advice.map((text) => `advice: ${text}`))
  if (status.notes.length > 0) lines.push('', ...status.notes.map((text) => `note: ${text}`))
  lines.push('', ...nextLines(status, configOption, ask))
  return lines.map((line) => `${line}\n`).join('')
}

function daemonLine({ daemon, timezone, now }: Status, configOption: string): string {
  const told = daemon.processes.map(({ pid, since, running }) => {
    const ago = `since ${since} (${inWords(Date.parse(now) - Date.parse(since))})`
    if (running === true) return `runs ${ago}, process ${pid}`
    return running === null
      ? `process ${pid} began ${ago}; this user cannot see whether it still runs`
      : `process ${pid}, at work ${ago}, died without being stopped`
  })
  if (told.length > 0) return `daemon: ${told.join('; ')}`
  return timezone === null
    ? 'daemon: none on this file'
    : `daemon: none runs; admin-mirror start${configOption} begins one`
}

/** What waits for the workers, in words. */
export function queueText({ waiting, oldest_ms: oldest, running, failed }: QueueDepth): string {
  const wait =
    oldest === null
      ? 'no list waits'
      : `${counted(waiting, 'list')} ${waiting === 1 ? 'waits' : 'wait'}, the first for ${inWords(oldest)}`
  const trouble = failed === 0 ? '' : `; ${counted(failed, 'run')} failed in the last hour`
  return `${wait}; ${grouped(running)} in hand${trouble}`
}

/** The next steps, each once, and at most MOST_STEPS. */
function nextLines(status: Status, configOption: string, ask: string): string[] {
  const { jobs, daemon, timezone, unusable } = status
  const isDead = timezone !== null && daemon.processes.length > 0 && daemon.running === false
  const begin = isDead ? [`begin the daemon again: admin-mirror start${configOption}`] : []
  const room = unusable === null ? [] : ['see to what is said above; until then nothing is written']
  const all = [...new Set([...room, ...begin, ...endOne(status), ...jobs.flatMap(({ next }) => next ?? [])])]
  const nothing = jobs.some((job) => job.too_old || job.too_stale)
    ? 'wait for the readings that are under way'
    : `nothing to do; ask the mirror with ${ask} "SELECT * FROM sync_status"`
  const [first = nothing, ...others] = all.slice(0, MOST_STEPS)
  const more = all.length - MOST_STEPS
  return [
    `next: ${first}`,
    ...others.map((next) => `      ${next}`),
    ...(more > 0 ? [`      ... and ${grouped(more)} more`] : []),
  ]
}

const MOST_STEPS = 5

/** Workers share a queue. Where there is none, each daemon reads every list. */
function endOne({ daemon, queue }: Status): string[] {
  const running = daemon.processes.filter((one) => one.running === true)
  if (queue || running.length < 2) return []
  return [
    `end all daemons but one, since each of them reads every list: ${running.map(({ pid }) => pid).join(', ')}`,
  ]
}
