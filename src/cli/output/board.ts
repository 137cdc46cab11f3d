import { counted, grouped, inWords } from '../../text.ts'
import type { Runtime } from '../runtime.ts'
import { type JobProgress, msPerPage, pagesOfAll, percentOf, timeLeft, timeLeftOfAll } from './progress.ts'
import { cellsOf, cut, fitted, padded, type Terminal } from './terminal.ts'

const DRAW_EVERY_MS = 200

/** How often a terminal that cannot draw gets a line. */
const PLAIN_EVERY_MS = 60_000

/** The progress lines of all jobs that run, drawn by a timer. */
export function createBoard({ now, every }: Pick<Runtime, 'now' | 'every'>, terminal: Terminal) {
  const running = new Set<JobProgress>()
  let whole: Whole = NOTHING_DONE
  let atRest: (() => string) | null = null

  function lines(): string[] {
    const jobs = [...running]
    if (jobs.length === 0) return atRest ? [cut(atRest(), terminal.width())] : []
    whole = { ...whole, percent: wholePercent(jobs, whole) }
    return progressLines(jobs, whole, { width: terminal.width(), height: terminal.height() }, now())
  }

  function drawPlain(): void {
    const [first] = running.size > 1 ? [wholeLine([...running], whole, terminal.width(), now())] : lines()
    if (first !== undefined) terminal.log.write(`${first}\n`)
  }

  function draw(): void {
    // Thousands of jobs may end at once, and each of them calls this.
    if (terminal.canDraw) terminal.draw(lines())
  }

  function startDrawing(): () => void {
    if (terminal.canDraw) return every(DRAW_EVERY_MS, draw)
    // Without a terminal, a service that waits for its hour must not wake five times a second.
    return terminal.isWatched ? every(PLAIN_EVERY_MS, drawPlain) : () => {}
  }
  const stopDrawing = startDrawing()

  return {
    jobs: (): readonly JobProgress[] => [...running],
    add(job: JobProgress) {
      // A service runs its jobs again and again: the sums of an earlier round do not count.
      if (running.size === 0) whole = NOTHING_DONE
      running.add(job)
    },
    end(job: JobProgress) {
      running.delete(job)
      const { done, pagesDone, rowsDone } = whole
      whole = { ...whole, done: done + 1, pagesDone: pagesDone + job.furthest, rowsDone: rowsDone + job.rows }
      draw()
    },
    /** Shows this line while no job runs. */
    showAtRest(text: () => string) {
      atRest = text
      draw()
    },
    /** Clears the lines and stops drawing. */
    close() {
      stopDrawing()
      atRest = null
      running.clear()
      draw()
    },
  }
}

/** What is known of a command beside its running jobs. */
interface Whole {
  /** Jobs that have ended. */
  done: number
  /** The pages and rows of these. */
  pagesDone: number
  rowsDone: number
  /** The percentage that was shown last: it never falls. */
  percent: number
}

const NOTHING_DONE: Whole = { done: 0, pagesDone: 0, rowsDone: 0, percent: 0 }

interface Screen {
  width: number
  height: number
}

/** A line for the whole if there are several jobs, then the jobs that fit on half of the screen, the moving ones first. */
export function progressLines(
  jobs: readonly JobProgress[],
  whole: Whole,
  { width, height }: Screen,
  now: number,
): string[] {
  if (jobs.length === 0) return []
  const isOne = jobs.length + whole.done === 1
  const head = isOne ? [] : [wholeLine(jobs, whole, width, now)]
  const room = Math.max(Math.floor(height / 2), 1) - head.length
  const shown = jobs.toSorted((a, b) => rank(a, now) - rank(b, now)).slice(0, room)
  const labels = Math.min(Math.max(...jobs.map(({ label }) => cellsOf(label))), Math.floor(width / 3))
  return [...head, ...shown.map((job) => jobLine(job, jobs, labels, width, now))]
}

/** Whether a job waits: for the rate limit, for another process, or for its turn. */
function isWaiting(job: JobProgress, now: number): boolean {
  if (job.state === 'busy' || (job.wait !== null && job.wait.until > now)) return true
  return job.answers === 0 && job.inFlight === 0
}

function rank(job: JobProgress, now: number): number {
  return (job.answers > 0 ? 0 : 2) + (isWaiting(job, now) ? 1 : 0)
}

/** `20 lists: 3 done, 2 reading, 15 waiting  41 % of 4,000 pages  13 minutes left  1,000 rows` */
function wholeLine(jobs: readonly JobProgress[], whole: Whole, width: number, now: number): string {
  const waiting = jobs.filter((job) => isWaiting(job, now)).length
  const counts = [
    [whole.done, 'done'],
    [jobs.length - waiting, 'reading'],
    [waiting, 'waiting'],
  ] as const
  const states = counts.filter(([count]) => count > 0).map(([count, what]) => `${grouped(count)} ${what}`)
  const left = timeLeftOfAll(jobs, now)
  const { read, known } = pagesOfAll(jobs)
  const rows = jobs.reduce((sum, job) => sum + job.rows, whole.rowsDone)
  const parts = [
    known === null
      ? counted(read + whole.pagesDone, 'page')
      : `${whole.percent} % of ${counted(known + whole.pagesDone, 'page')}`,
    left === null ? '' : `${inWords(left)} left`,
    counted(rows, 'row'),
  ]
  return fitted(`${counted(jobs.length + whole.done, 'list')}: ${states.join(', ')}`, parts, width)
}

/** The percent of all pages of the jobs that run and have ended, at least what was shown before. */
export function wholePercent(
  jobs: readonly JobProgress[],
  { pagesDone, percent: before }: Pick<Whole, 'pagesDone' | 'percent'>,
): number {
  const { read, known } = pagesOfAll(jobs)
  if (known === null || known + pagesDone === 0) return before
  return Math.max(before, Math.min(percentOf(read + pagesDone, known + pagesDone), 99))
}

function jobLine(
  job: JobProgress,
  all: readonly JobProgress[],
  labels: number,
  width: number,
  now: number,
): string {
  const left = timeLeft(job, all, now)
  const label = padded(cut(job.label, labels), labels)
  const wait = waitText(job, now)
  const parts = [
    pageText(job),
    wait,
    left === null ? '' : `${inWords(left)} left`,
    job.answers === 0 ? '' : counted(job.rows, 'row'),
    wait !== '' && job.wait ? `(${job.wait.reason})` : speedOf(job),
  ]
  return fitted(label, parts, width)
}

function pageText(job: JobProgress): string {
  const { answers, page, furthest, lastPage, percent, pass, state, owner, requests } = job
  if (state === 'busy') return `waiting for ${owner ?? 'another process'}`
  if (state === 'queued' && requests > 0) return 'reading the newest rows'
  if (answers === 0) return ''
  const share = percent === null ? '' : `${percent} % `
  const again = pass > 1 ? `, pass ${pass}` : ''
  if (page < furthest) return `${share}checking page ${grouped(page)} again${again}`
  const of = lastPage === null || lastPage < page ? '' : ` of ${grouped(lastPage)}`
  return `${share}page ${grouped(page)}${of}${again}`
}

function waitText(job: JobProgress, now: number): string {
  const { wait, state, answers, inFlight } = job
  if (state === 'busy') return ''
  if (wait !== null && wait.until > now) return `waiting ${inWords(wait.until - now)}`
  if (answers > 0) return ''
  return inFlight > 0 ? (state === 'queued' ? '' : 'first page...') : 'waiting for its turn'
}

function speedOf(job: JobProgress): string {
  const each = msPerPage(job)
  return each === null || each === 0 ? '' : `${grouped(Math.round(each))} ms a page`
}
