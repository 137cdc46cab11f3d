import { type HappeningOf, listenWith } from '../happening.ts'
import type { SimulatedProcess } from '../process.ts'
import type { Reader } from '../traffic.ts'
import { jobName, type Request } from '../traffic.ts'
import { type OracleContext, type Row, splitJob } from './context.ts'
import type { PageInHand } from './ledger.ts'
import { pauseOf } from './pace.ts'
import type { SavedRows } from './versions.ts'

interface RunKnowledge {
  id: number
  reader: Reader
  job: string
  process: SimulatedProcess
  requests: number
  hits: number
  /** As a line of `sync_runs` must have them: counted, and as they were when the last page was written. */
  written: Row
  isOver: boolean
}

const NUMBERS = [
  'pages',
  'rows_seen',
  'rows_added',
  'rows_changed',
  'rows_removed',
  'requests',
  'rate_limit_hits',
]

type Beginning = Pick<HappeningOf<'run began'>, 'process' | 'job' | 'run'>

/** The numbers of `sync_runs` are what the server saw, and the run of a dead process is closed by the job's next one. */
export function watchRuns({ setting, mirror, complain }: OracleContext) {
  const runs: RunKnowledge[] = []

  /** Older pages that are read between those of a walk count for the last refresh, which is over. */
  function current({ job, process, reader }: Request): RunKnowledge | undefined {
    return runs.findLast(
      (run) =>
        run.job === job &&
        run.process === process &&
        run.reader === reader &&
        (reader === 'refresh' || !run.isOver),
    )
  }

  function lineOf(run: RunKnowledge): Row | undefined {
    // The line of a run that was taken back leaves its id to whichever comes next.
    return mirror.rows(
      'SELECT * FROM sync_runs WHERE id = ? AND organization_id = ? AND collection = ?',
      run.id,
      ...splitJob(run.job),
    )[0]
  }

  function compare(run: RunKnowledge, line: Row | undefined, status: string): void {
    if (line?.status !== status) complain(`run ${run.id} is ${String(line?.status)}, not ${status}`, run.job)
    if (!line?.finished_at) complain(`run ${run.id} has no end`, run.job)
    compareNumbers(run, line)
  }

  function compareNumbers(run: RunKnowledge, line: Row | undefined): void {
    for (const name of NUMBERS)
      if (line?.[name] !== run.written[name])
        complain(
          `run ${run.id} says ${name} ${String(line?.[name])}, not ${String(run.written[name])}`,
          run.job,
        )
  }

  function onBegan({ process, job, run }: Beginning, reader: Reader, within: number | null): void {
    const name = jobName(job.organization.id, job.collection.name)
    for (const old of runs.filter((one) => one.job === name && !one.isOver && one.id !== within))
      onDead(old, run)
    const running = mirror.rows(
      `SELECT id FROM sync_runs WHERE organization_id = ? AND collection = ? AND status = 'running'`,
      job.organization.id,
      job.collection.name,
    )
    if (running.length !== (within === null ? 1 : 2))
      complain(`${running.length} runs of one job are running`, name)
    const written = Object.fromEntries(NUMBERS.map((number) => [number, 0]))
    runs.push({ id: run, reader, job: name, process, requests: 0, hits: 0, written, isOver: false })
  }

  /** It was killed at some point, perhaps just after its end was written. */
  function onDead(run: RunKnowledge, next: number): void {
    run.isOver = true
    const line = run.id === next ? undefined : lineOf(run)
    if (!line && run.requests === 0) return
    const hasItsEnd = line?.status !== 'interrupted' || line.requests !== run.written.requests
    const whole = { ...run, written: { ...run.written, ...traffic(run) } }
    if (hasItsEnd && line?.status !== 'running') compare(whole, line, String(line?.status))
    else compare(run, line, 'interrupted')
  }

  function onFinished(id: number, status: string): void {
    const run = runs.findLast((one) => one.id === id && !one.isOver)
    if (!run) {
      complain(`run ${id} ends that never began`)
      return
    }
    run.isOver = true
    compare({ ...run, written: { ...run.written, ...traffic(run) } }, lineOf(run), status)
  }

  function onCancelled(id: number): void {
    const run = runs.findLast((one) => one.id === id && !one.isOver)
    if (!run) return
    run.isOver = true
    if (run.requests > 0) complain(`run ${id} has sent requests and leaves no line`, run.job)
    if (lineOf(run)) complain(`run ${id} was taken back and is there`, run.job)
  }

  function onSaved({ request, page }: PageInHand, rows: SavedRows): void {
    const run = current(request)
    if (!run) {
      complain('a page is written in no run', request.job)
      return
    }
    const { pages, rows_seen, rows_added, rows_changed } = run.written
    run.written = {
      pages: Number(pages) + 1,
      rows_seen: Number(rows_seen) + page.items.length,
      rows_added: Number(rows_added) + rows.added,
      rows_changed: Number(rows_changed) + rows.changed,
      rows_removed: run.written.rows_removed,
      ...traffic(run),
    }
    const line = lineOf(run)
    if (setting.isOnServer) run.written = { ...run.written, ...known(traffic(run), line) }
    compareNumbers(run, line)
  }

  function onGone(job: string, rows: number): void {
    const run = runs.findLast((one) => one.job === job && one.reader === 'walk' && !one.isOver)
    if (run) run.written = { ...run.written, rows_removed: Number(run.written.rows_removed) + rows }
  }

  const tell = listenWith({
    sent({ request }) {
      const run = current(request)
      if (run) run.requests++
    },
    delivered({ request, outcome }) {
      const run = current(request)
      if (run && pauseOf(outcome, setting.config.rateLimit) !== null) run.hits++
    },
    'run began': (told) => onBegan(told, 'walk', null),
    'refresh began': (told) => onBegan(told, 'refresh', told.within),
    'run finished': ({ run, outcome }) => onFinished(run, outcome.status),
    'refresh finished': ({ run, outcome }) => onFinished(run, outcome.status),
    'run cancelled': ({ run }) => onCancelled(run),
  })

  return { tell, onSaved, onGone }
}

/** On a server, a request may leave while a page is under way there: the page's line of the run does not count it yet. */
function known(counted: Row, line: Row | undefined): Row {
  const values = Object.entries(counted).map(([name, value]) => {
    const says = Number(line?.[name])
    return [name, says === Number(value) - 1 ? says : value]
  })
  return Object.fromEntries(values)
}

function traffic({ requests, hits }: RunKnowledge): Row {
  return { requests, rate_limit_hits: hits }
}
