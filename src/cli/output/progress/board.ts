import type { Runtime } from '../../runtime.ts'
import type { Terminal } from '../terminal.ts'
import { cut } from './fit.ts'
import type { JobProgress } from './job-progress.ts'
import { progressLines, wholeLine, wholePercent } from './lines.ts'

const DRAW_EVERY_MS = 200

/** How often a terminal that cannot draw gets a line. */
const PLAIN_EVERY_MS = 60_000

/** The progress lines of all jobs that run, drawn by a timer. */
export interface Board {
  jobs(): readonly JobProgress[]
  add(job: JobProgress): void
  end(job: JobProgress): void
  /** Shows this line while no job runs. */
  showAtRest(text: () => string): void
  /** Clears the lines and stops drawing. */
  close(): void
}

export function createBoard({ now, every }: Pick<Runtime, 'now' | 'every'>, terminal: Terminal): Board {
  const running = new Set<JobProgress>()
  let whole = { done: 0, pagesDone: 0, rowsDone: 0, percent: 0 }
  let atRest: (() => string) | null = null

  function lines(): string[] {
    const jobs = [...running]
    if (jobs.length === 0) return atRest ? [cut(atRest(), terminal.width())] : []
    whole.percent = wholePercent(jobs, whole)
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
    jobs: () => [...running],
    add(job) {
      // A service runs its jobs again and again: what ran before is another whole.
      if (running.size === 0) {
        whole = { done: 0, pagesDone: 0, rowsDone: 0, percent: 0 }
      }
      running.add(job)
    },
    end(job) {
      running.delete(job)
      whole.done++
      whole.pagesDone += job.furthest
      whole.rowsDone += job.rows
      draw()
    },
    showAtRest(text) {
      atRest = text
      draw()
    },
    close() {
      stopDrawing()
      atRest = null
      running.clear()
      draw()
    },
  }
}
