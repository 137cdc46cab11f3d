import { isAhead } from '../clock.ts'
import { ERRORS, type ErrorCode } from '../errors.ts'
import type { MisfitColumn, StatusRow } from '../store/core/status.ts'
import { scopeText } from '../sync/removals.ts'
import { counted, grouped, inWords, ON_HOLD, printable, shellWord } from '../text.ts'
import { backfillOf } from './next-step.ts'
import type { JobPlan, JobStatus, StatusFacts } from './status.ts'
import type { State } from './verdict.ts'

// What is said of a list, in words: what is wrong with it, how far its walk is, and what else is worth knowing.

export interface Problem {
  /** The error code; null: the list is overdue. */
  code: string | null
  since: string | null
  /** The cause. It may repeat what a server said. */
  text: string
}

/** What is wrong with a list, and since when; null: nothing. */
export function problemOf(row: StatusRow, state: State, plan: JobPlan | null, now: number): Problem | null {
  if (state === 'token refused')
    return {
      code: 'UNAUTHORIZED',
      since: row.held_since,
      text: printable(row.held_reason ?? 'its token was refused', 500),
    }
  if (state === 'removals held back') return { code: 'REMOVALS_HELD', since: null, text: removalsText(row) }
  if (state === 'failing' || state === 'write failed') {
    const code = row.failing_code ?? 'INTERNAL'
    return { code, since: row.failing_since, text: causeText(code, withoutHold(row.failing_message), row) }
  }
  if (state === 'no answer') {
    const [code = '', ...message] = (row.retry_error ?? '').split(': ')
    return { code, since: row.retry_since, text: causeText(code, message.join(': '), row) }
  }
  return state === 'overdue' ? overdueProblem(row, plan, now) : null
}

function removalsText(row: StatusRow): string {
  const { removals_held: held, held_why: why, held_out_of_scope: outOfScope, rows } = row
  const reason = why === 'empty' ? 'the list came without items' : 'more than the brake allows in one walk'
  const scope = scopeText({ rows: held, outOfScope: outOfScope ?? 0 })
  return `${grouped(held)} of the list's ${counted(rows, 'row')} left it${scope || ','} and their removal is held back: ${reason}`
}

function overdueProblem(row: StatusRow, plan: JobPlan | null, now: number): Problem {
  const late = { code: null, since: null }
  if (row.last_run_at === null) return { ...late, text: 'never read' }
  if (isAhead(row.as_of ?? row.last_sync_finished_at, now))
    return { ...late, text: 'read by a clock that was ahead' }
  if (plan?.dueAt == null) return { ...late, text: 'no run has come to an end' }
  const text = `by its schedule (${printable(plan.schedule, 60)}) it should have been read`
  return { code: null, since: new Date(plan.dueAt).toISOString(), text }
}

/** The code and the cause, without the list and page that messages begin with: so that lists with one cause are told together. */
function causeText(code: string, message: string | null, { organization, collection }: StatusRow): string {
  const words = message || (Object.hasOwn(ERRORS, code) ? ERRORS[code as ErrorCode].meaning : '')
  const list = `${organization} ${collection} page `
  const cause = words.startsWith(list) ? words.slice(list.length).replace(/^[\d,]+: /, '') : words
  return printable(cause === '' ? code : `${code}: ${cause}`, 500)
}

/** After `resume` the last error is still that of the refused token. */
function withoutHold(message: string | null): string | null {
  return message?.split(` ${ON_HOLD}`)[0] ?? null
}

/** What is worth knowing of a list beside what is wrong with it. */
export function notesOf(row: StatusRow, job: JobStatus, facts: StatusFacts): string[] {
  const { maxAge, fresh, now } = facts
  const { waiting_until: until, rows_missed: missed } = row
  const notes: (string | null | false)[] = [
    (isAhead(row.as_of, now) || isAhead(row.fresh_as_of, now)) &&
      'read by a clock that was ahead: its times are in the future, and say nothing of how fresh it is',
    job.too_old === true &&
      `too old: ${row.as_of === null ? 'no whole reading yet, and ' : ''}--max-age is ${maxAge?.typed}`,
    job.too_stale === true &&
      `too stale: ${row.fresh_as_of === null ? 'nothing says how fresh its newest rows are' : `rows added after ${row.fresh_as_of} may be missing`}, and --fresh is ${fresh?.typed}`,
    // With the UUID: an organization that left the configuration may have the name of a configured one.
    job.state === 'not configured' &&
      `no longer in the configuration; its rows stay, or go with: admin-mirror forget --org ${row.organization_id} --collection ${shellWord(row.collection)} --yes`,
    ...progressNotes(row, job, facts),
    until !== null && `waits until ${until} (${inWords(Date.parse(until) - now)}): ${row.waiting_for}`,
    job.problem === null && lastErrorText(row, now),
    row.removals_held > 0 && job.state !== 'removals held back' && removalsText(row),
    missed !== null &&
      missed > 0 &&
      `the last walk did not see ${counted(missed, 'row')}; what the next walk does not see either is removed, or held back`,
    row.untrusted !== null && printable(`its last walk removed nothing: ${row.untrusted}`, 500),
  ]
  return notes.filter((note) => typeof note === 'string')
}

/** The error of a last run after which the list is not failing. */
function lastErrorText(row: StatusRow, now: number): string | null {
  const { error_code: code, last_run_at: at } = row
  if (code === null || at === null) return null
  return `last run ${inWords(now - Date.parse(at))} ago: ${causeText(code, withoutHold(row.error_message), row)}`
}

/** What a process does with the list, or how far its open walk is and what continues it. */
function progressNotes(
  row: StatusRow,
  { walk_percent: percent, walk_left_ms: left }: JobStatus,
  { unusable }: StatusFacts,
): string[] {
  const { running, last_run_status: last, work, walk_origin: origin } = row
  if (running && work === 'verify') return ['being compared (verify)']
  if (running && work === 'refresh') return ['being refreshed']
  const share = percent === null ? '' : ` (${percent} %)`
  const time = left === null ? '' : `, about ${inWords(left)} left`
  const where = `${origin === 'backfill' ? 'a backfill at ' : ''}${positionText(row)}${share}${time}`
  if (running && last === 'running')
    return [`running since ${row.last_run_at}${origin === null ? '' : `: ${where}`}`]
  if (running) return ['about to begin']
  if (running === null && last === 'running')
    return [
      `began ${row.last_run_at}, last page written ${row.walk_updated_at ?? row.last_run_at}: ${where}; this user cannot see whether it still runs`,
    ]
  const isKilled = last === 'running' && row.error_code === null && unusable === null
  const killed = isKilled ? [`interrupted: the run of ${row.last_run_at} ended without a result`] : []
  if (origin === null || (row.walk_rows_seen === 0 && row.walk_total === null)) return killed
  const how =
    origin === 'backfill'
      ? `; to continue it: admin-mirror ${backfillOf(row)}`
      : '; the next run continues there'
  return [...killed, `stopped: ${where}${row.configured === 1 ? how : ''}`]
}

function positionText({ walk_page: page, walk_rows_seen: seen, walk_total: total }: StatusRow): string {
  const at = page === null ? 'all pages read' : `page ${grouped(page)}`
  if (seen === null) return at
  if (seen === 0 && total === null) return `${at}, nothing read yet`
  return `${at}, ${grouped(seen)}${total === null ? '' : ` of ${grouped(total)}`} items seen`
}

/** A line for each column NAME__text that has values. */
export function misfitNotes(misfits: readonly MisfitColumn[]): string[] {
  return misfits.map(
    ({ collection, column, rows }) =>
      `${printable(collection, 100)}.${printable(column, 100)} has the values of ${counted(rows, 'row')} that did not fit the column beside it`,
  )
}

/** What the part of its rate limit carries that refreshes may use, of each budget whose lists were refreshed. */
export function refreshNotes(
  rows: readonly Pick<
    StatusRow,
    'refresh_budget' | 'organization' | 'collection' | 'refreshed_every_ms' | 'refresh_share'
  >[],
): string[] {
  const budgets = [...Map.groupBy(rows, ({ refresh_budget: budget }) => budget).values()]
  return budgets.flatMap((lists) => {
    const times = lists.flatMap(({ refreshed_every_ms: every }) => (every === null ? [] : [every]))
    const share = Math.max(...lists.map(({ refresh_share: perMinute }) => perMinute ?? 0))
    const [first] = lists
    if (!first || times.length === 0 || share <= 0) return []
    const names = [...new Set(lists.map(({ organization }) => printable(organization, 80)))]
    const whose = names.length === 1 ? names.join('') : counted(names.length, 'organization')
    const who =
      lists.length === 1
        ? `${names.join('')} ${printable(first.collection, 100)} has`
        : `${counted(lists.length, 'list')}${budgets.length === 1 ? '' : ` of ${whose}`} share`
    const [busiest, quietest] = [inWords(Math.min(...times)), inWords(Math.max(...times))]
    const ends = lists.length === 1 ? 'its newest end' : 'newest ends'
    const every = busiest === quietest ? busiest : `${busiest} to ${quietest}`
    const rate = Number(share.toPrecision(share < 10 ? 1 : 2))
    return [
      `${who} ${rate} requests a minute for refreshes: ${ends} every ${every}, the rest for older pages`,
    ]
  })
}
