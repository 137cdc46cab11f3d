import { ERRORS, type ErrorCode } from '../errors.ts'
import type { StatusRow } from '../store/core/status.ts'
import { scopeText } from '../sync/removals.ts'
import { counted, grouped, inWords, ON_HOLD, printable } from '../text.ts'
import { backfillCommand, forgetCommand, isStopped } from './next-step.ts'
import type { JobPlan, JobStatus, State, StatusFacts } from './status.ts'
import { isAhead } from './verdict.ts'

// What is said of a list, in words: what is wrong with it, how far its walk is, and what else is worth knowing.

interface Problem {
  text: string | null
  since: string | null
}

/** What is wrong with a list, and since when. */
export function problemOf(row: StatusRow, state: State, plan: JobPlan | null): Problem {
  switch (state) {
    case 'token held':
      return { text: printable(row.held_reason ?? 'its token was refused', 500), since: row.held_since }
    case 'removals held':
      return { text: removalsText(row), since: null }
    case 'failing':
      return {
        text: causeText(row.failing_code ?? 'INTERNAL', withoutHold(row, row.failing_message), row),
        since: row.failing_since,
      }
    case 'overdue':
      return overdueProblem(row, plan)
    case 'no answer': {
      const [code = '', ...message] = (row.retry_error ?? '').split(': ')
      return { text: causeText(code, message.join(': '), row), since: row.retry_since }
    }
    case 'not configured':
    case 'not read yet':
    case 'being read':
    case 'unfinished':
    case 'uncertain':
    case 'read':
  }
  return { text: null, since: null }
}

function removalsText(row: StatusRow): string {
  const { removals_held: held, held_why: why, held_out_of_scope: outOfScope, rows } = row
  const reason = why === 'empty' ? 'the list came without items' : 'more than the brake allows in one walk'
  const scope = scopeText({ rows: held, outOfScope: outOfScope ?? 0 })
  return `${grouped(held)} of these ${counted(rows, 'row')} left the list${scope} and are held back: ${reason}`
}

function overdueProblem({ last_run_at: lastRun }: StatusRow, plan: JobPlan | null): Problem {
  if (lastRun === null) return { text: 'never read', since: null }
  if (plan?.dueAt == null) return { text: 'read by a clock that was ahead', since: null }
  const text = `by its schedule (${printable(plan.schedule, 60)}) it should have been read`
  return { text, since: new Date(plan.dueAt).toISOString() }
}

/** The code and the cause, without the list and page that messages begin with: so that lists with one cause are told together. */
function causeText(code: string, message: string | null, { organization, collection }: StatusRow): string {
  const words = message ?? (Object.hasOwn(ERRORS, code) ? ERRORS[code as ErrorCode].meaning : '')
  const list = `${organization} ${collection} page `
  const cause = words.startsWith(list) ? words.slice(list.length).replace(/^[\d,]+: /, '') : words
  return printable(cause === '' ? code : `${code}: ${cause}`, 500)
}

/** After `resume` the last error is still that of the refused token. */
export function withoutHold({ held_since: held }: StatusRow, text: string | null): string | null {
  return held ? text : (text?.split(` ${ON_HOLD}`)[0] ?? null)
}

/** What is worth knowing of a list beside what is wrong with it. */
export function notesOf(
  row: StatusRow,
  job: JobStatus,
  { max_age: maxAge, fresh, now }: StatusFacts,
): string[] {
  const notes: (string | null)[] = [
    isAhead(row.as_of, now) || isAhead(row.fresh_as_of, now)
      ? 'read by a clock that was ahead: its times are in the future, and say nothing of how fresh it is'
      : null,
    job.too_old === true ? tooOldText(row, maxAge) : null,
    job.too_stale === true ? tooStaleText(row, fresh) : null,
    job.configured
      ? null
      : `no longer in the configuration; its rows stay, or go with: ${forgetCommand(row)}`,
    ...progressNotes(row, job),
    row.waiting_until === null
      ? null
      : `waits until ${row.waiting_until} (${inWords(Date.parse(row.waiting_until) - now)}): ${row.waiting_for}`,
    lastErrorText(row, job, now),
    row.rows_missed === 0
      ? null
      : `the last walk did not see ${counted(row.rows_missed, 'row')}; what the next walk does not see either is removed, or held back`,
    row.untrusted === null ? null : printable(`its last walk removed nothing: ${row.untrusted}`, 500),
  ]
  return notes.filter((note) => note !== null)
}

function tooOldText({ as_of: asOf }: StatusRow, maxAge: string | null): string {
  if (asOf === null) return `too old: no whole reading yet, and --max-age is ${maxAge}`
  return `too old: --max-age is ${maxAge}`
}

function tooStaleText({ fresh_as_of: freshAsOf }: StatusRow, fresh: string | null): string {
  if (freshAsOf === null)
    return `too stale: nothing says how fresh its newest rows are, and --fresh is ${fresh}`
  return `too stale: rows added after ${freshAsOf} may be missing, and --fresh is ${fresh}`
}

/** The error of the last run where that is not what the problem says. */
function lastErrorText(
  row: StatusRow,
  { state, error_message: message }: JobStatus,
  now: number,
): string | null {
  const { error_code: code, last_run_at: at } = row
  const isSaid = state === 'failing' || state === 'removals held' || state === 'token held'
  if (code === null || at === null || isSaid) return null
  return `last run ${inWords(now - Date.parse(at))} ago: ${causeText(code, message, row)}`
}

/** What a process does with the list, and how far each open walk is and what continues it. */
function progressNotes(row: StatusRow, { walk_percent: percent, walk_left_ms: left }: JobStatus): string[] {
  const isBegun = row.last_run_status === 'running' && row.running !== false && row.work !== 'verify'
  const ofBackfill = isBegun && row.last_run_trigger === 'backfill'
  const ofSync = isBegun && !ofBackfill
  const share = percent === null ? '' : ` (${percent} %)`
  const time = left === null ? '' : `, about ${inWords(left)} left`
  const where = `${positionText(row.walk_page, row.walk_rows_seen, row.walk_total)}${share}${time}`
  const notes: string[] = []
  if (row.running && !isBegun) notes.push(`running: ${WORK_WORDS[row.work ?? 'manual'] ?? 'about to begin'}`)
  if (ofSync) notes.push(runText(row, where, row.walk_updated_at))
  else if (isStopped(row) && row.error_code === null)
    notes.push(`interrupted: the run of ${row.last_run_at} ended without a result`)
  const isEmpty = row.walk_rows_seen === 0 && row.walk_total === null
  if (!ofSync && row.walk_origin === 'sync' && !isEmpty)
    notes.push(`stopped at ${where}${row.configured === 1 ? '; the next run continues there' : ''}`)
  for (const walk of row.backfills) {
    const at = positionText(walk.page, walk.rows_seen, walk.total)
    if (ofBackfill && walk.is_last_run) notes.push(runText(row, `a backfill at ${at}`, walk.updated_at))
    else notes.push(`a backfill stopped at ${at}; to continue it: ${backfillCommand(row, walk)}`)
  }
  return notes
}

/** Words for work that is no walk, or comes before one. */
const WORK_WORDS: Readonly<Partial<Record<NonNullable<StatusRow['work']>, string>>> = {
  verify: 'being compared (verify)',
  refresh: 'being refreshed',
}

function runText(row: StatusRow, where: string, updatedAt: string | null): string {
  if (row.running) return `running since ${row.last_run_at}: ${where}`
  return `began ${row.last_run_at}, last page written ${updatedAt ?? row.last_run_at}: ${where}; this user cannot see whether it still runs`
}

function positionText(page: number | null, seen: number | null, total: number | null): string {
  const at = page === null ? 'all pages read' : `page ${grouped(page)}`
  if (seen === null) return at
  if (seen === 0 && total === null) return `${at}, nothing read yet`
  return `${at}, ${grouped(seen)}${total === null ? '' : ` of ${grouped(total)}`} items seen`
}
