import { ERRORS } from '../errors.ts'
import type { StatusRow } from '../store/core/status.ts'
import { grouped, printable, shellWord } from '../text.ts'
import type { DaemonProcess, Status, StatusFacts } from './status.ts'
import { isErrorCode, type State } from './verdict.ts'

/** What somebody has to do. */
export interface NextStep {
  /** What to do or to look at first; null: nothing. */
  say: string | null
  /** What to type; null: nothing. */
  command: string | null
}

/** The same of a list, before it is known which others need it too. */
export interface Step {
  say: string | null
  /** The command without the lists that it is for. */
  verb: 'sync' | 'resume' | 'backfill' | null
  /** Whether it is for all lists of the organization, or for this one alone. */
  of: 'organization' | 'list'
  /** What is typed behind the lists. */
  options: readonly string[]
  /** Where the refused token is that it is about. */
  token?: string
  /** What to look with first, for the same lists: it writes nothing. */
  lookWith?: 'verify'
}

/** What is known of a list beside its row. */
interface StepContext {
  /** Whether it is older than `--max-age` or `--fresh` allows. */
  isTooOld: boolean
  /** Where its token is; null if that is not known. */
  tokenPlace: string | null
  /** Whether a `start` runs, which tries again by itself. */
  isServed: boolean
  /** To restart a `start` with an older configuration than the file; null: there is none. */
  restart: string | null
}

/** What to do about a list; nothing where its state is not named, unless it is too old. */
const STEPS: Partial<Record<State, (row: StatusRow, context: StepContext) => Step>> = {
  'write failed': afterFailure,
  'token refused': (row, { tokenPlace, restart }) => {
    // What that process met says nothing of the token that the file has now.
    if (restart !== null) return stepTo(restart)
    const place = tokenPlace === null ? '' : ` (${printable(tokenPlace, 300)})`
    const who = printable(row.organization, 80)
    const step = stepTo(`give ${who} a new token${place}, or if the old one is valid again`, 'resume')
    return tokenPlace === null ? step : { ...step, token: tokenPlace }
  },
  // A list that fails cannot be looked at.
  'removals held back': (row, context) =>
    row.failing_since === null ? LOOK_AND_ACCEPT : afterFailure(row, context),
  failing: afterFailure,
  'no answer': () => stepTo('wait: it is tried again by itself; if it lasts, tell whoever runs the API'),
  'never read': syncOnceAllowed,
  overdue: (row) =>
    row.running
      ? stepTo('look at the log of the process that is reading the list: it has written nothing for an hour')
      : syncOnceAllowed(row),
  unfinished: (row) => (row.waiting_until === null ? goOn(row) : syncOnceAllowed(row)),
}

/** What to do about a list; null: nothing. */
export function nextStep(row: StatusRow, state: State, context: StepContext): Step | null {
  return STEPS[state]?.(row, context) ?? (context.isTooOld && !row.running ? SYNC : null)
}

function stepTo(say: string | null, verb: Step['verb'] = null): Step {
  return { say, verb, of: 'organization', options: [] }
}

const SYNC = stepTo(null, 'sync')
const LOOK_AND_ACCEPT: Step = {
  ...stepTo(
    'whether these rows really left the list (it writes nothing); only if they did, delete them',
    'sync',
  ),
  of: 'list',
  options: ['--accept-removals'],
  lookWith: 'verify',
}
const WAIT = stepTo('wait: it is tried again by itself')

/** Runs that went on with a walk, and failed where they had begun. */
const STOPS = 2

function afterFailure(row: StatusRow, { isServed }: StepContext): Step {
  if (row.running) return WAIT
  if (row.error_code === 'RATE_LIMITED' && row.waiting_until !== null) return syncOnceAllowed(row)
  if (row.walk_page !== null && (row.walk_stops ?? 0) >= STOPS) return passBy(row, row.walk_page)
  const code = row.failing_code ?? ''
  if (!isErrorCode(code) || !ERRORS[code].passes) return { ...goOn(row), say: 'look at the error, then' }
  return isServed ? WAIT : { ...goOn(row), say: 'when the API answers again' }
}

/** No run sends anything before the time that the server asked for. */
function syncOnceAllowed({ waiting_until: until }: StatusRow): Step {
  return until === null ? SYNC : stepTo(`wait until ${until}, or forget the wait`, 'resume')
}

/** Of a page that always fails. */
function passBy(row: StatusRow, page: number): Step {
  const { walk_stops: stops, walk_total: total, walk_rows_seen: seen, walk_pages: pages } = row
  const failed = `page ${grouped(page)} failed in ${stops} runs, and the pages before it did not`
  // The items that are left fit on it: nothing is listed behind it.
  if (total !== null && seen !== null && pages !== null && total - seen <= seen / pages)
    return stepTo(`${failed}: once the API mends it`, 'sync')
  return {
    say: `${failed}: until the API mends it, those behind it can be tried with`,
    verb: 'backfill',
    of: 'list',
    options: ['--from-page', String(page + 1)],
  }
}

/** What goes on with the last run. A sync does not continue a backfill: of a list that was read whole, only that is left to do. */
function goOn(row: StatusRow): Step {
  if (row.last_run_trigger !== 'backfill' || row.walk_origin !== 'backfill' || row.as_of === null) return SYNC
  const step = { say: null, verb: 'backfill', of: 'list', options: [] } as const
  // A full backfill has the configured filters; typing them would make it partial.
  if (row.walk_kind !== 'partial') return step
  const filters = Object.entries(JSON.parse(row.walk_filters ?? '{}') as Record<string, unknown>)
  const typedFilters = filters.flatMap(([name, value]) =>
    [value].flat().flatMap((one) => ['--filter', `${name}=${String(one)}`]),
  )
  const first = row.walk_first_page ?? 1
  return { ...step, options: [...typedFilters, ...(first > 1 ? ['--from-page', String(first)] : [])] }
}

/** A list, as commands name it. */
type Named = Pick<StatusRow, 'organization' | 'organization_id' | 'collection'>

function typed(...words: string[]): string {
  return ['admin-mirror', ...words.map(shellWord)].join(' ')
}

/** A step for some lists. `isAll`: for all organizations, so that none is named. */
export function stepFor(step: Step, lists: readonly Named[], isAll = false): NextStep {
  const { say, verb, of, options, lookWith } = step
  if (verb === null) return { say, command: null }
  const organizations = isAll ? [] : lists.map(({ organization }) => organization)
  const collections = of === 'list' ? lists.map(({ collection }) => collection) : []
  const names = [
    ...[...new Set(organizations)].flatMap((name) => ['--org', name]),
    ...[...new Set(collections)].flatMap((name) => ['--collection', name]),
  ]
  return {
    say: lookWith ? `see with ${typed(lookWith, ...names)} ${say}` : say,
    command: typed(verb, ...names, ...options),
  }
}

/** Of more organizations a command names none, and is for all. */
const MOST_ORGANIZATIONS = 3

/** What somebody has to do about lists, each thing once, for all of those that need it. */
export function stepsOf(all: readonly { list: Named; step: Step | null }[]): NextStep[] {
  const inNeed = all.flatMap(({ list, step }) => (step === null ? [] : [{ list, step }]))
  // A command for lists of several organizations would do the same to lists that do not need it.
  const groups = Map.groupBy(
    inNeed,
    ({ list, step }) => step.token ?? JSON.stringify([step, step.of === 'list' && list.organization_id]),
  )
  const count = (lists: readonly { list: Named }[]) =>
    new Set(lists.map(({ list }) => list.organization_id)).size
  return Array.from(groups.values(), (inGroup) => {
    const step = inGroup[0]?.step ?? SYNC
    // One organization stands for all that use a token.
    const group = step.token === undefined ? inGroup : inGroup.slice(0, 1)
    const named = count(group)
    // Where none is named, `resume` frees the refused tokens of others, too.
    const isAll =
      named > 1 && (named === count(all) || (named > MOST_ORGANIZATIONS && step.verb !== 'resume'))
    return stepFor(
      step,
      group.map(({ list }) => list),
      isAll,
    )
  })
}

/** What to do that is not about a list. */
export function stepsOfTheWhole(
  {
    unusable,
    unpublished,
    daemon: { running, processes },
  }: Pick<Status, 'unusable' | 'unpublished' | 'daemon'>,
  { isConfigLost, isShared }: Pick<StatusFacts, 'isConfigLost' | 'isShared'>,
  restart: string | null,
): NextStep[] {
  const living = processes.filter((one) => one.running).map(({ pid }) => pid)
  const all: readonly (readonly [isNeeded: boolean, say: string, command: string | null])[] = [
    [
      unusable !== null,
      'mend what the first line says: a start that runs goes on by itself then, and what the mirror holds can be queried meanwhile',
      null,
    ],
    [
      unpublished !== null,
      'mend why nothing is published, which is tried again after the next runs',
      'admin-mirror check',
    ],
    [restart !== null, restart ?? '', null],
    [isConfigLost, 'mend the configuration file, with which no command can begin', 'admin-mirror check'],
    [
      processes.length > 0 && running === false,
      'start the daemon again, by its service if it has one',
      'admin-mirror start',
    ],
    [
      !isShared && living.length > 1,
      `stop all daemons but one, since each of them reads every list: ${living.join(', ')}`,
      null,
    ],
  ]
  return all.flatMap(([isNeeded, say, command]) => (isNeeded ? [{ say, command }] : []))
}

/** Null where no `start` has an older configuration. */
export function restartText(processes: readonly DaemonProcess[]): string | null {
  const outdated = processes.filter((one) => one.outdated).map(({ pid }) => pid)
  return outdated.length === 0
    ? null
    : `restart start (process ${outdated.join(', ')}), by its service if it has one: it runs with another configuration than the file has now`
}
