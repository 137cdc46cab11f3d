import { timeLeft } from '../../report/time-left.ts'
import type { JobEvent } from '../../sync/job.ts'
import { ownerName } from '../../sync/run.ts'
import type { Job, Observe } from '../../sync/types.ts'
import { counted, grouped, inWords, jobName, printable } from '../../text.ts'
import type { Runtime } from '../runtime.ts'
import type { Log } from './log.ts'

// On a terminal, a line for each list that is being read.

export interface ProgressOptions {
  draw: NonNullable<Log['draw']>
  runtime: Pick<Runtime, 'now' | 'every'>
}

/** How far a list is. Times are epoch milliseconds. */
interface List {
  label: string
  begunAt: number | null
  /** Answers of this run, the page read last, and the last one of the list, where that is known. */
  pages: number
  page: number
  lastPage: number | null
  rows: number
  /** What it waits for; `until` null: for another process. */
  wait: { for: string; until: number | null } | null
}

const DRAW_EVERY_MS = 200

/** No terminal shows more lines. */
const MOST_DRAWN = 50

export function createProgress({ draw, runtime }: ProgressOptions) {
  const { now, every } = runtime
  const running = new Set<List>()
  const redraw = () => draw(linesOf([...running], now()))
  const stopDrawing = every(DRAW_EVERY_MS, redraw)

  return {
    observe(job: Job): Observe<JobEvent> {
      const list: List = {
        label: printable(jobName(job), 60),
        begunAt: null,
        pages: 0,
        page: 0,
        lastPage: null,
        rows: 0,
        wait: null,
      }
      running.add(list)
      redraw()
      return (event) => {
        note(list, event, now())
        if (event.kind !== 'finish' && event.kind !== 'verified') return
        running.delete(list)
        redraw()
      }
    },
    close() {
      stopDrawing()
      draw([])
    },
  }
}

function note(list: List, event: JobEvent, at: number): void {
  if (event.kind === 'busy') list.wait = { for: ownerName(event.owner), until: null }
  else if (event.kind === 'retry') list.wait = { for: event.reason, until: at + event.delayMs }
  else if (event.kind === 'wait') list.wait = { for: event.reason, until: event.until }
  else if (event.kind === 'start') Object.assign(list, { wait: null, rows: event.walk.rowsSeen })
  else if (event.kind === 'request') Object.assign(list, { wait: null, begunAt: list.begunAt ?? at })
  else if (event.kind === 'page') {
    const { page, itemsInWalk: rows } = event
    Object.assign(list, { page: page.number, lastPage: page.lastPage, rows })
    list.pages++
  }
}

/** Those that move come first. */
function linesOf(running: readonly List[], now: number): string[] {
  const lists = running.toSorted((a, b) => Number(b.pages > 0) - Number(a.pages > 0)).slice(0, MOST_DRAWN)
  const widest = Math.max(...lists.map(({ label }) => label.length))
  return lists.map((list) => `${list.label.padEnd(widest)}  ${stateText(list, now)}`)
}

/** `page 12 of 40, 300 rows, about 2 minutes left`, or what the list waits for. */
function stateText({ begunAt, pages, page, lastPage, rows, wait }: List, now: number): string {
  const parts: string[] = []
  const left = timeLeft({
    pages,
    runMs: now - (begunAt ?? now),
    waitMs: (wait?.until ?? now) - now,
    pagesLeft: lastPage === null ? null : Math.max(lastPage - page, 0),
  })
  const of = lastPage === null || lastPage < page ? '' : ` of ${grouped(lastPage)}`
  if (pages > 0) parts.push(`page ${grouped(page)}${of}, ${counted(rows, 'row')}`)
  if (left !== null) parts.push(`about ${inWords(left)} left`)
  if (wait?.until === null) parts.push(`waits for ${printable(wait.for, 60)}`)
  else if (wait && wait.until > now)
    parts.push(`waits ${inWords(wait.until - now)}: ${printable(wait.for, 100)}`)
  return parts.join(', ') || 'waits for its first page'
}
