import type { StatusRow } from '../store/core/status.ts'
import { grouped, printable, shellWord } from '../text.ts'
import type { State } from './verdict.ts'

/** What somebody has to do. */
export interface NextStep {
  /** What to do or to look at first; null: nothing. */
  say: string | null
  /** What to type; null: nothing. */
  command: string | null
}

/** The same of a list, before it is known which others need it too. */
export interface Step extends NextStep {
  /** The command without `admin-mirror` and the lists that it is for. */
  command: string | null
  /** Which lists the command is to name: all of the organization, this list alone, or none, since they stand in it. */
  of: 'organization' | 'list' | 'none'
}

const SYNC: Step = { say: null, command: 'sync', of: 'organization' }

/** What is known of a list beside its row. */
interface StepContext {
  /** Whether it is older than `--max-age` or `--fresh` allows. */
  isTooOld: boolean
  isOverdue: boolean
  /** Where its token is; null if that is not known. */
  tokenPlace: string | null
  /** Whether a `start` runs, which tries again by itself. */
  isServed: boolean
  /** To restart a `start` with an older configuration than the file: what it met says nothing of that; null: there is none. */
  restart: string | null
}

/** What to do about a list; null if there is nothing to do, or a process works on it and nothing is wrong. */
export function nextStep(row: StatusRow, state: State, now: number, context: StepContext): Step | null {
  const { isTooOld, isOverdue, tokenPlace, isServed, restart } = context
  if (state === 'not configured') return null
  if (row.held_since !== null && restart !== null) return only(restart)
  if (row.held_since !== null) {
    const place = tokenPlace === null ? '' : ` (${printable(tokenPlace, 300)})`
    const say = `give ${printable(row.organization, 80)} a new token${place}, or if the old one is valid again`
    return { say, command: 'resume', of: 'organization' }
  }
  if (row.removals_held > 0)
    return {
      say: 'look whether these rows really left the list (verify compares it with the API), then',
      command: 'sync --accept-removals',
      of: 'list',
    }
  if (row.running && isOverdue)
    return only('look at the log of the process that is reading the list: it has written nothing for an hour')
  if (row.running) return row.failing_since === null ? null : TRIED_AGAIN
  if (state === 'not read yet') return SYNC
  // No run sends anything before the time that the server asked for.
  if (row.error_code === 'RATE_LIMITED' && Date.parse(row.waiting_until ?? '') > now)
    return {
      say: `wait until ${row.waiting_until}, or forget the wait`,
      command: 'resume',
      of: 'organization',
    }
  if (row.failing_since !== null) return afterFailure(row, isServed)
  if (state === 'unfinished') return goingOn(row)
  return isTooOld || isOverdue ? SYNC : null
}

function only(say: string): Step {
  return { say, command: null, of: 'none' }
}

const TRIED_AGAIN = only('wait: it is tried again by itself')

/** The run that first met the page, and so many that went on with its walk. */
const STOPS = 2

/** Faults that pass: whoever reads by a schedule tries again. */
const PASSING = new Set(['NETWORK', 'TIMEOUT', 'SERVER_ERROR', 'RATE_LIMITED'])

function afterFailure(row: StatusRow, isServed: boolean): Step {
  const {
    walk_stops: stops,
    walk_page: page,
    walk_total: total,
    walk_rows_seen: seen,
    walk_pages: pages,
  } = row
  if (page !== null && stops !== null && stops >= STOPS) {
    const failed = `page ${grouped(page)} failed in each of the last ${stops + 1} runs, and the pages before it did not`
    // The items that are left fit on it: nothing is listed behind it.
    if (total !== null && seen !== null && pages !== null && total - seen <= seen / pages)
      return { ...SYNC, say: `${failed}: once the API mends it` }
    const say = `${failed}: until the API mends it, those behind it can be tried with`
    return { say, command: `backfill --from-page ${page + 1}`, of: 'list' }
  }
  if (!PASSING.has(row.failing_code ?? '')) return { ...goingOn(row), say: 'look at the error, then' }
  return isServed ? TRIED_AGAIN : { ...goingOn(row), say: 'when the API answers again' }
}

/** What goes on with the last run. A sync does not continue a backfill: of a list that was read whole, only that is left to do. */
function goingOn(row: StatusRow): Step {
  const isBackfill = row.last_run_trigger === 'backfill' && row.walk_origin === 'backfill'
  return isBackfill && row.as_of !== null ? { say: null, command: backfillOf(row), of: 'none' } : SYNC
}

/** A name with characters that only show as escapes cannot be pasted: then the UUID. */
function orgWord({ organization, organization_id: id }: Named): string {
  return printable(organization, organization.length) === organization ? shellWord(organization) : id
}

/** A list, as commands name it. */
type Named = Pick<StatusRow, 'organization' | 'organization_id' | 'collection'>

type OpenBackfill = Pick<StatusRow, 'walk_kind' | 'walk_filters' | 'walk_first_page'>

/** The command that continues the open backfill of a list, without `admin-mirror`. */
export function backfillOf(row: Named & OpenBackfill): string {
  const words = ['--collection', row.collection]
  // A full backfill has the configured filters; typing them would make it partial.
  if (row.walk_kind === 'partial') {
    const filters = JSON.parse(row.walk_filters ?? '{}') as Record<string, unknown>
    for (const [name, value] of Object.entries(filters))
      for (const one of [value].flat()) words.push('--filter', `${name}=${String(one)}`)
    const first = row.walk_first_page ?? 1
    if (first > 1) words.push('--from-page', String(first))
  }
  return `backfill --org ${orgWord(row)} ${words.map(shellWord).join(' ')}`
}

/** A step for one list, as `status` shows it. */
export function stepOf(step: Step, row: Named): NextStep {
  return typed(step, [row], false)
}

/** Of more organizations a command names none: it is for all. */
const MOST_NAMED = 3

/** What somebody has to do, each command once, for all of the lists together that need it. */
export function stepsOf(all: readonly { row: Named; step: Step | null }[]): NextStep[] {
  const needed = all.flatMap(({ row, step }) => (step === null ? [] : [{ row, step }]))
  const groups = Map.groupBy(needed, ({ row, step }) => {
    // A command for lists would do the same to lists that do not need it, if it named those of several organizations.
    const own = step.of === 'list' ? row.organization_id : ''
    return JSON.stringify([step.say, step.command, own])
  })
  const organizations = countOf(all.map(({ row }) => row))
  return Array.from(groups.values(), (group) => {
    const rows = group.map(({ row }) => row)
    const named = countOf(rows)
    return typed(group[0]?.step ?? SYNC, rows, named > 1 && (named === organizations || named > MOST_NAMED))
  })
}

function countOf(rows: readonly Named[]): number {
  return new Set(rows.map((row) => row.organization_id)).size
}

/** `isAll`: the command is for all organizations, so it names none. */
function typed({ say, command, of }: Step, rows: readonly Named[], isAll: boolean): NextStep {
  if (command === null) return { say, command }
  if (of === 'none') return { say, command: `admin-mirror ${command}` }
  // The options of a command come behind its lists: `sync --org acme --accept-removals`.
  const [name = '', ...others] = command.split(' ')
  const words = [
    ...(isAll ? [] : options('org', rows.map(orgWord))),
    ...(of === 'list'
      ? options(
          'collection',
          rows.map((row) => shellWord(row.collection)),
        )
      : []),
  ]
  return { say, command: ['admin-mirror', name, ...words, ...others].join(' ') }
}

function options(name: string, words: readonly string[]): string[] {
  return [...new Set(words)].flatMap((word) => [`--${name}`, word])
}
