import { type HappeningOf, listenWith, type Reader, type Request } from '../happening.ts'
import type { SimulatedProcess } from '../process.ts'
import type { OracleContext } from './context.ts'
import type { Finding } from './ledger.ts'
import { pauseOf } from './pace.ts'

interface Run {
  id: number
  reader: Reader
  job: string
  process: SimulatedProcess
  isOver: boolean
  /** As its line of `sync_runs` must have it at its end. */
  counts: typeof NOTHING
}

const NOTHING = {
  pages: 0,
  rows_seen: 0,
  rows_added: 0,
  rows_changed: 0,
  rows_removed: 0,
  requests: 0,
  rate_limit_hits: 0,
}

/** A run that ends says what the server saw of it; one whose process died is closed by the job's next one. */
export function watchRuns({ setting, mirror, complain }: OracleContext) {
  const runs: Run[] = []

  function current({ job, process, reader }: Request): Run | undefined {
    return runs.findLast(
      (run) => run.job === job && run.process === process && run.reader === reader && !run.isOver,
    )
  }

  function lineOf({ id, job }: Run) {
    // The line of a run that was taken back leaves its id to whichever comes next.
    return mirror.ofJob(job, 'SELECT * FROM sync_runs', 'AND id = ?', id)[0]
  }

  function onBegan(told: HappeningOf<'run began' | 'refresh began'>): void {
    const { process, job, run: id } = told
    const within = told.kind === 'refresh began' ? told.within : null
    for (const run of runs) if (run.job === job && run.id !== within) run.isOver = true
    const running = mirror.ofJob(job, 'SELECT id FROM sync_runs', "AND status = 'running'").length
    if (running !== (within === null ? 1 : 2)) complain(`${running} runs of one job are running`, job)
    const reader = told.kind === 'run began' ? 'walk' : 'refresh'
    runs.push({ id, reader, job, process, isOver: false, counts: { ...NOTHING } })
  }

  function onFinished({ run: id, status }: HappeningOf<'run finished' | 'refresh finished'>): void {
    const run = runs.findLast((one) => one.id === id && !one.isOver)
    if (!run) {
      complain(`run ${id} ends that never began`)
      return
    }
    run.isOver = true
    const line = lineOf(run)
    if (line?.status !== status || !line.finished_at)
      complain(`run ${id} is ${String(line?.status)}, not ${status}`, run.job)
    for (const [name, count] of Object.entries(run.counts))
      if (line?.[name] !== count)
        complain(`run ${id} says ${name} ${String(line?.[name])}, not ${count}`, run.job)
  }

  return listenWith<Finding>({
    sent({ request }) {
      const run = current(request)
      if (run) run.counts.requests++
    },
    delivered({ request, outcome }) {
      const run = current(request)
      if (run && pauseOf(outcome, setting.config.rateLimit) !== null) run.counts.rate_limit_hits++
    },
    'run began': onBegan,
    'refresh began': onBegan,
    'run finished': onFinished,
    'refresh finished': onFinished,
    'run cancelled'({ run: id }) {
      const run = runs.findLast((one) => one.id === id && !one.isOver)
      if (!run) return
      run.isOver = true
      if (run.counts.requests > 0) complain(`run ${id} has sent requests and leaves no line`, run.job)
      if (lineOf(run)) complain(`run ${id} was taken back and is there`, run.job)
    },
    written({ request, written: { items, added, changed } }) {
      const counts = current(request)?.counts
      if (!counts) return
      counts.pages++
      counts.rows_seen += items
      counts.rows_added += added
      counts.rows_changed += changed
    },
    gone({ job, gone }) {
      const run = runs.findLast((one) => one.job === job && one.reader === 'walk' && !one.isOver)
      if (run) run.counts.rows_removed += gone.length
    },
  })
}
