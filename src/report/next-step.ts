import type { OpenBackfill, StatusRow } from '../store/core/status.ts'
import { grouped, printable, shellWord } from '../text.ts'

/** What is known of a list beside its row. */
interface StepContext {
  /** Whether it is older than `--max-age` or `--fresh` allows. */
  isTooOld?: boolean
  /** Whether it should have been read by now. */
  isOverdue?: boolean
  /** Where its token is; null if that is not known. */
  tokenPlace?: string | null
  /** Whether a `start` runs, which tries again by itself. */
  isServed?: boolean
}

/** What somebody has to do about a list. */
export interface Step {
  /** What to do or to look at first; null: nothing. */
  say: string | null
  /** Of `admin-mirror`, without the lists that it is for; null: there is nothing to type. */
  command: string | null
  /** Which lists the command names: all of the organization, this list alone, or none, since they stand in it. */
  of: 'organization' | 'list' | 'none'
}

const SYNC: Step = { say: null, command: 'sync', of: 'organization' }

/** Faults that pass: whoever reads by a schedule tries again. */
const PASSING = new Set(['NETWORK', 'TIMEOUT', 'SERVER_ERROR', 'RATE_LIMITED'])

/** What to do about a list; null if there is nothing to do, or a process works on it and nothing is wrong. */
export function nextStep(row: StatusRow, now: number, context: StepContext = {}): Step | null {
  const { isTooOld = false, isOverdue = false, tokenPlace = null, isServed = false } = context
  if (row.held_since) {
    const place = tokenPlace === null ? '' : ` (${printable(tokenPlace, 300)})`
    const say = `give ${printable(row.organization, 80)} a new token${place}, or if the old one is valid again`
    return { say, command: 'resume', of: 'organization' }
  }
  if (row.configured === 0) return null
  if (row.removals_held > 0)
    return {
      say: 'check that these rows really left the list, then',
      command: 'sync --accept-removals',
      of: 'list',
    }
  if (row.running) return whileRunning(row, isOverdue)
  if (row.last_run_at === null) return SYNC
  if (mustWait(row, now))
    return {
      say: `wait until ${row.waiting_until}, or forget the wait`,
      command: 'resume',
      of: 'organization',
    }
  if (row.failing_since !== null) return afterFailure(row, isServed)
  if (row.running === false && row.walk_origin === 'sync') return SYNC
  if (isStopped(row)) return afterBackfill(row)
  return row.as_of === null || isTooOld || isOverdue ? SYNC : null
}

/** A run in progress may mend what is wrong, so there is nothing to type yet. */
function whileRunning({ failing_since: failingSince }: StatusRow, isOverdue: boolean): Step | null {
  if (isOverdue)
    return told('look at the log of the process that is reading the list: it has written nothing for an hour')
  return failingSince === null ? null : told('wait: a run is trying again')
}

function told(say: string): Step {
  return { say, command: null, of: 'none' }
}

/** The run that first met the page, and so many that went on with its walk. */
const STOPS = 2

function afterFailure(row: StatusRow, isServed: boolean): Step {
  const { walk_stops: stops, walk_page: page } = row
  if (page !== null && (stops ?? 0) >= STOPS) {
    const say = `page ${grouped(page)} failed in each of the last ${(stops ?? 0) + 1} runs, and the pages before it did not: until the API mends it, those behind it can be tried with`
    return { say, command: `backfill --from-page ${page + 1}`, of: 'list' }
  }
  const again = row.last_run_trigger === 'backfill' ? backfillOfLastRun(row) : SYNC
  if (!PASSING.has(row.failing_code ?? '')) return { ...again, say: 'look at the error, then' }
  return isServed
    ? told('wait: it is tried again by itself')
    : { ...again, say: 'when the API answers again' }
}

/** True if no run sends anything before the time that the server asked for. */
function mustWait({ error_code: code, waiting_until: until }: StatusRow, now: number): boolean {
  return code === 'RATE_LIMITED' && Date.parse(until ?? '') > now
}

type RunState = Pick<StatusRow, 'running' | 'last_run_status'>

/** True if the last run was stopped, or its process killed. */
export function isStopped({ running, last_run_status: status }: RunState): boolean {
  return status === 'interrupted' || (status === 'running' && running === false)
}

/** A sync does not continue a backfill: if the list was read whole, only the backfill is left to do. */
function afterBackfill(row: StatusRow): Step {
  const wantsSync = row.last_run_trigger !== 'backfill' || row.as_of === null
  return wantsSync ? SYNC : backfillOfLastRun(row)
}

function backfillOfLastRun(row: StatusRow): Step {
  const walk = row.backfills.find((backfill) => backfill.is_last_run)
  return walk ? { say: null, command: backfillOf(row, walk), of: 'none' } : SYNC
}

/** A name with characters that only show as escapes cannot be pasted: then the UUID. */
function orgWord({ organization, organization_id: id }: Named): string {
  return printable(organization, organization.length) === organization ? shellWord(organization) : id
}

/** A list, as commands name it. */
export type Named = Pick<StatusRow, 'organization' | 'organization_id' | 'collection'>

/** The command that continues a backfill. */
export function backfillCommand(row: Named, walk: OpenBackfill): string {
  return `admin-mirror ${backfillOf(row, walk)}`
}

function backfillOf(row: Named, { kind, filters, first_page: firstPage }: OpenBackfill): string {
  const words = ['--collection', row.collection]
  // A full backfill has the configured filters; typing them would make it partial.
  if (kind === 'partial') {
    for (const [name, value] of Object.entries(filters))
      for (const one of [value].flat()) words.push('--filter', `${name}=${String(one)}`)
    if (firstPage > 1) words.push('--from-page', String(firstPage))
  }
  return `backfill --org ${orgWord(row)} ${words.map(shellWord).join(' ')}`
}

/**
 * The command that forgets a list. With the UUID: an organization that
 * left the configuration may have the name of a configured one.
 */
export function forgetCommand({ organization_id: id, collection }: Named): string {
  return `admin-mirror forget --org ${id} --collection ${shellWord(collection)} --yes`
}

/** A step for one list, as `status` shows it. */
export function stepText(step: Step, row: Named): string {
  return textOf(step, [row], { isAll: false })
}

/** A list, and what somebody has to do about it. */
interface ListStep {
  row: Named
  step: Step | null
}

/** What somebody has to do, each command once, for all of the lists together that need it. */
export function stepsText(all: readonly ListStep[]): string[] {
  const needed = all.flatMap(({ row, step }) => (step === null ? [] : [{ row, step }]))
  const groups = Map.groupBy(needed, ({ row, step }) => {
    // A command for lists would do the same to lists that do not need it, if it named those of several organizations.
    const own = step.of === 'list' ? row.organization_id : ''
    return JSON.stringify([step.say, step.command, own])
  })
  const organizations = new Set(all.map(({ row }) => row.organization_id)).size
  return Array.from(groups.values(), ([first, ...others]) => {
    const rows = [first, ...others].flatMap((one) => one?.row ?? [])
    const named = new Set(rows.map((row) => row.organization_id)).size
    const isAll = named > 1 && (named === organizations || named > MOST_NAMED)
    return textOf(first?.step ?? SYNC, rows, { isAll })
  })
}

/** Of more organizations a command names none: it is for all. */
const MOST_NAMED = 3

function options(option: string, names: readonly string[]): string {
  return [...new Set(names)].map((name) => ` --${option} ${name}`).join('')
}

function textOf({ say, command, of }: Step, rows: readonly Named[], { isAll }: { isAll: boolean }): string {
  if (command === null) return say ?? ''
  const org = of === 'none' || isAll ? '' : options('org', rows.map(orgWord))
  const list =
    of === 'list'
      ? options(
          'collection',
          rows.map((row) => shellWord(row.collection)),
        )
      : ''
  // The options of a command come behind its lists: `sync --org acme --accept-removals`.
  const [name, ...others] = of === 'none' ? [command] : command.split(' ')
  const typed = ['admin-mirror', `${name}${org}${list}`, ...others].join(' ')
  return say === null ? typed : `${say}: ${typed}`
}
