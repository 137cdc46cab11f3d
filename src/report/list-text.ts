import { ERRORS } from '../errors.ts'
import type { MisfitColumn, StatusRow } from '../store/core/status.ts'
import { outOfScopeText, WHY_HELD } from '../sync/removals.ts'
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
  /** The same for who is told elsewhere: nothing in it is of a server, which may name an item. */
  meaning: string
}

type ProblemOf = (row: StatusRow, plan: JobPlan | null) => Problem

const PROBLEMS: Partial<Record<State, ProblemOf>> = {
  'write failed': failure,
  'token refused': ({ held_since, held_reason }) =>
    problem('UNAUTHORIZED', held_since, printable(held_reason ?? 'its token was refused', 500)),
  'removals held back': (row) => problem('REMOVALS_HELD', null, removalsText(row)),
  failing: failure,
  'never read': () => problem(null, null, 'no run has begun'),
  overdue: (_, plan) =>
    plan?.dueAt == null
      ? // Or its times are in the future: the clock was ahead.
        problem(null, null, 'no run has come to an end by now')
      : problem(
          null,
          new Date(plan.dueAt).toISOString(),
          `by its schedule (${printable(plan.schedule, 60)}) it should have been read`,
        ),
  'no answer': (row) => {
    const [code = '', ...message] = (row.retry_error ?? '').split(': ')
    return problem(code, row.retry_since, causeText(code, message.join(': '), row))
  },
  uncertain: ({ untrusted }) =>
    problem(null, null, printable(`its last walk removed nothing: ${untrusted}`, 500)),
}

function problem(code: string | null, since: string | null, text: string): Problem {
  return { code, since, text, meaning: code === null ? text : meaningOf(code) }
}

function meaningOf(code: string): string {
  return isErrorCode(code) ? `${code} (${ERRORS[code].meaning})` : printable(code, 60)
}

function failure(row: StatusRow): Problem {
  const code = row.failing_code ?? 'INTERNAL'
  return problem(code, row.failing_since, causeText(code, row.failing_message, row))
}

/** What is wrong with a list, and since when; null: nothing. */
export function problemOf(row: StatusRow, state: State, plan: JobPlan | null): Problem | null {
  const found = PROBLEMS[state]?.(row, plan) ?? null
  // Of a refused token nothing else is told: all lists that it keeps from being read have this one cause.
  const failing = row.failing_since === null || state === 'token refused' ? null : failure(row)
  if (found === null || failing === null || found.code === failing.code) return found
  // It is failing beside what is graver.
  return {
    ...found,
    text: `${found.text}; failing: ${failing.text}`,
    meaning: `${found.meaning}; failing: ${failing.meaning}`,
  }
}

function removalsText({ removals_held: held, held_out_of_scope, rows }: StatusRow): string {
  const scope = outOfScopeText({ rows: held, outOfScope: held_out_of_scope ?? 0 })
  return `the API no longer lists ${grouped(held)} of the ${counted(rows, 'row')}${scope || ','} and they stay in the mirror until somebody decides, since ${WHY_HELD}`
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
  const { waiting_until: until, waiting_for } = row
  const notes = [
    job.too_old === true && `older than --max-age ${maxAge?.typed}`,
    job.too_stale === true &&
      `older than --fresh ${fresh?.typed}: ${row.fresh_as_of === null ? 'how new its newest rows are is not known' : `rows added after ${row.fresh_as_of} may be missing`}`,
    // With the UUID: an organization that left the configuration may have the name of a configured one.
    job.state === 'not configured' &&
      `no longer in the configuration; its rows stay, or go with: admin-mirror forget --org ${row.organization_id} --collection ${shellWord(row.collection)} --yes`,
    progressText(row, job),
    until !== null && `waits until ${until} (${inWords(Date.parse(until) - now)}): ${waiting_for}`,
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
  return `stopped: ${where}`
}

/** Of a column NAME__text that has values. */
export function misfitText({ collection, column, rows }: MisfitColumn): string {
  return `${printable(collection, 100)}.${printable(column, 100)} has the values of ${counted(rows, 'row')} that did not fit the column beside it`
}
