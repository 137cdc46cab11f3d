import { type HappeningOf, listenWith, type Reader, type Request } from '../happening.ts'
import type { SimulatedProcess } from '../process.ts'
import type { OracleContext } from './context.ts'
import type { Finding } from './ledger.ts'
import { pauseOf } from './pace.ts'

/** As a line of `sync_runs` must have it at the end. */
const NOTHING = {
  pages: 0,
  rows_seen: 0,
  rows_added: 0,
  rows_changed: 0,
  rows_removed: 0,
  requests: 0,
  rate_limit_hits: 0,
}

interface Run {
  id: number
  reader: Reader
  job: string
  process: SimulatedProcess
  counts: typeof NOTHING
}

/** A run that ends says what the server saw of it; one whose process died is closed by the job's next one. */
export function watchRuns({ setting, mirror, complain }: OracleContext) {
  /** Those that are not over. */
  const runs = new Map<number, Run>()

  function countsOf({ job, process, reader }: Request): Run['counts'] {
    const isIt = (run: Run) => run.job === job && run.process === process && run.reader === reader
    return [...runs.values()].find(isIt)?.counts ?? { ...NOTHING }
  }

  function end(id: number): Run | undefined {
    const run = runs.get(id)
    runs.delete(id)
    return run
  }

  const lineOf = ({ id, job }: Run) => mirror.ofJob(job, 'SELECT * FROM sync_runs', 'AND id = ?', id)[0]

  function onBegan(told: HappeningOf<'run began' | 'refresh began'>): void {
    const { process, job, run: id } = told
    const within = told.kind === 'refresh began' ? told.within : null
    for (const run of runs.values()) if (run.job === job && run.id !== within) runs.delete(run.id)
    const running = mirror.ofJob(job, 'SELECT id FROM sync_runs', "AND status = 'running'").length
    if (running !== (within === null ? 1 : 2)) complain(`${running} runs of one job are running`, job)
    const reader = told.kind === 'run began' ? 'walk' : 'refresh'
    runs.set(id, { id, reader, job, process, counts: { ...NOTHING } })
  }

  function onFinished({ run: id, status, job }: HappeningOf<'run finished' | 'refresh finished'>): void {
    const run = end(id)
    if (!run) {
      complain(`run ${id} ends that never began`)
      return
    }
    const line = lineOf(run)
    if (line?.status !== status || !line.finished_at)
      complain(`run ${id} is ${String(line?.status)}, not ${status}`, job)
    for (const [name, count] of Object.entries(run.counts))
      if (line?.[name] !== count)
        complain(`run ${id} says ${name} ${String(line?.[name])}, not ${count}`, job)
  }

  return listenWith<Finding>({
    'run began': onBegan,
    'refresh began': onBegan,
    sent({ request }) {
      countsOf(request).requests++
    },
    delivered({ request, outcome }) {
      if (pauseOf(outcome, setting.config.rateLimit) !== null) countsOf(request).rate_limit_hits++
    },
    written({ request, written: { items, added, changed } }) {
      const counts = countsOf(request)
      counts.pages++
      counts.rows_seen += items
      counts.rows_added += added
      counts.rows_changed += changed
    },
    gone({ job, gone }) {
      for (const run of runs.values())
        if (run.job === job && run.reader === 'walk') run.counts.rows_removed += gone.length
    },
    'run finished': onFinished,
    'refresh finished': onFinished,
    'run cancelled'({ run: id }) {
      const run = end(id)
      // The line of a run that was taken back leaves its id to whichever comes next.
      if (!run) return
      if (run.counts.requests > 0) complain(`run ${id} has sent requests and leaves no line`, run.job)
      if (lineOf(run)) complain(`run ${id} was taken back and is there`, run.job)
    },
  })
}
