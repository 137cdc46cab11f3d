import { isAhead } from '../clock.ts'
import { ERRORS } from '../errors.ts'
import type { MisfitColumn, StatusRow } from '../store/core/status.ts'
import { outOfScopeText } from '../sync/removals.ts'
import { counted, grouped, inWords, ON_HOLD, printable, shellWord } from '../text.ts'
import type { JobPlan, JobStatus, StatusFacts } from './status.ts'
import { isErrorCode, type State } from './verdict.ts'

// What is said of a list in words: what is wrong with it, how far its walk is, and what else is worth knowing.

export interface Problem {
  /** The error code; null: no run says what is wrong. */
  code: string | null
  since: string | null
  /** The cause. It may repeat what a server said. */
  text: string
}

const AHEAD =
  'read by a clock that was ahead: its times are in the future, and say nothing of how fresh it is'

type ProblemOf = (row: StatusRow, plan: JobPlan | null, now: number) => Problem

const PROBLEMS: Partial<Record<State, ProblemOf>> = {
  'write failed': failure,
  'token refused': ({ held_since: since, held_reason: reason }) => ({
    code: 'UNAUTHORIZED',
    since,
    text: printable(reason ?? 'its token was refused', 500),
  }),
  'removals held back': (row) => ({ code: 'REMOVALS_HELD', since: null, text: removalsText(row) }),
  failing: failure,
  'never read': () => ({ code: null, since: null, text: 'no run has begun' }),
  overdue: (row, plan, now) => {
    if (isAhead(row.as_of ?? row.last_sync_finished_at, now)) return { code: null, since: null, text: AHEAD }
    if (plan?.dueAt == null) return { code: null, since: null, text: 'no run has come to an end' }
    const text = `by its schedule (${printable(plan.schedule, 60)}) it should have been read`
    return { code: null, since: new Date(plan.dueAt).toISOString(), text }
  },
  'no answer': (row) => {
    const [code = '', ...message] = (row.retry_error ?? '').split(': ')
    return { code, since: row.retry_since, text: causeText(code, message.join(': '), row) }
  },
  uncertain: ({ untrusted }) => ({
    code: null,
    since: null,
    text: printable(`its last walk removed nothing: ${untrusted}`, 500),
  }),
}

/** What is wrong with a list, and since when; null: nothing. */
export function problemOf(row: StatusRow, state: State, plan: JobPlan | null, now: number): Problem | null {
  return PROBLEMS[state]?.(row, plan, now) ?? null
}

function failure(row: StatusRow): Problem {
  const code = row.failing_code ?? 'INTERNAL'
  return { code, since: row.failing_since, text: causeText(code, row.failing_message, row) }
}

function removalsText({ removals_held: held, held_why, held_out_of_scope, rows }: StatusRow): string {
  const why =
    held_why === 'empty' ? 'the list came without items' : 'they are more than the limit of one walk'
  const scope = outOfScopeText({ rows: held, outOfScope: held_out_of_scope ?? 0 })
  return `the API no longer lists ${grouped(held)} of the ${counted(rows, 'row')}${scope || ','} and they stay in the mirror until somebody decides, since ${why}`
}

/** The code and the cause, without the list and page that messages begin with: so that lists with one cause are told together. */
function causeText(code: string, message: string | null, { organization, collection }: StatusRow): string {
  // After `resume` the last error is still that of the refused token.
  const [words = ''] = (message ?? '').split(` ${ON_HOLD}`)
  const list = `${organization} ${collection} page `
  const cause = words.startsWith(list) ? words.slice(list.length).replace(/^[\d,]+: /, '') : words
  const meaning = isErrorCode(code) ? ERRORS[code].meaning : ''
  return printable([code, cause || meaning].filter((part) => part !== '').join(': '), 500)
}

/** What is worth knowing of a list beside what is wrong with it. */
export function notesOf(row: StatusRow, job: JobStatus, { maxAge, fresh, now }: StatusFacts): string[] {
  const { waiting_until: until, waiting_for, error_code: code, last_run_at: at } = row
  const notes = [
    job.problem === null && (isAhead(row.as_of, now) || isAhead(row.fresh_as_of, now)) && AHEAD,
    job.too_old === true && `older than --max-age ${maxAge?.typed}`,
    job.too_stale === true &&
      `older than --fresh ${fresh?.typed}: ${row.fresh_as_of === null ? 'how new its newest rows are is not known' : `rows added after ${row.fresh_as_of} may be missing`}`,
    // With the UUID: an organization that left the configuration may have the name of a configured one.
    job.state === 'not configured' &&
      `no longer in the configuration; its rows stay, or go with: admin-mirror forget --org ${row.organization_id} --collection ${shellWord(row.collection)} --yes`,
    progressText(row, job),
    until !== null && `waits until ${until} (${inWords(Date.parse(until) - now)}): ${waiting_for}`,
    // Of a run after which the list is not failing.
    job.problem === null &&
      code !== null &&
      at !== null &&
      // Since then all rows that it held back may have been listed again.
      !(code === 'REMOVALS_HELD' && row.removals_held === 0) &&
      `last run ${inWords(now - Date.parse(at))} ago: ${causeText(code, row.error_message, row)}`,
    // It may be failing beside what is graver.
    job.problem !== null &&
      job.failing_code !== null &&
      job.failing_code !== job.problem.code &&
      `failing since ${row.failing_since}: ${failure(row).text}`,
    row.removals_held > 0 && job.state !== 'removals held back' && removalsText(row),
  ]
  return notes.filter((note) => typeof note === 'string')
}

/** What a process does with the list, or where its open walk has stopped; null: nothing is read. */
function progressText(
  row: StatusRow,
  { walk_percent: percent, walk_left_ms: left }: JobStatus,
): string | null {
  const { work, walk_origin: origin, walk_rows_seen: seen, walk_total: total, walk_page: page } = row
  if (row.running && work === 'verify') return 'being compared (verify)'
  if (row.running && work === 'refresh') return 'being refreshed'
  if (row.running && row.last_run_status !== 'running') return 'about to begin'
  const where = [
    `${origin === 'backfill' ? 'a backfill at ' : ''}${page === null ? 'all pages read' : `page ${grouped(page)}`}`,
    `${grouped(seen ?? 0)}${total === null ? '' : ` of ${grouped(total)}`} items seen${percent === null ? '' : ` (${percent} %)`}`,
    ...(left === null ? [] : [`about ${inWords(left)} left`]),
  ].join(', ')
  if (row.running) return `running since ${row.last_run_at}${origin === null ? '' : `: ${where}`}`
  if (!seen) return null
  return `stopped: ${where}${origin === 'sync' && row.configured === 1 ? '; the next run continues there, or begins anew after resumeWithin or with other filters' : ''}`
}

/** Of a column NAME__text that has values. */
export function misfitText({ collection, column, rows }: MisfitColumn): string {
  return `${printable(collection, 100)}.${printable(column, 100)} has the values of ${counted(rows, 'row')} that did not fit the column beside it`
}
