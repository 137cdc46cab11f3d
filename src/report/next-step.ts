import { ERRORS } from '../errors.ts'
import type { StatusRow } from '../store/core/status.ts'
import { grouped, printable, shellWord } from '../text.ts'
import type { DaemonProcess, Status } from './status.ts'
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
  /** What its command names: organizations, of which it is for all lists, or lists of one organization. */
  of: 'organizations' | 'lists'
  /** `names`: the options that name them. */
  tell: (names: string) => NextStep
}

/** What is known of a list beside its row. */
interface StepContext {
  /** Whether it is older than `--max-age` or `--fresh` allows. */
  isTooOld: boolean
  /** Where its token is; null if that is not known. */
  tokenPlace: string | null
  /** Whether a `start` runs, which tries again by itself. */
  isServed: boolean
  /** Whether a `start` has an older configuration than the file. */
  isOutdated: boolean
}

/** What to do about a list; nothing where its state is not named, unless it is too old. */
const STEPS: Partial<Record<State, (row: StatusRow, context: StepContext) => Step | null>> = {
  'write failed': afterFailure,
  'token refused': (_, { tokenPlace, isOutdated }) => {
    // What that process met says nothing of the token that the file has now.
    if (isOutdated) return null
    const place = tokenPlace === null ? '' : ` (${printable(tokenPlace, 300)})`
    return stepTo(`put in a new token${place}, or if the old one is valid again`, 'resume')
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
  const decide = STEPS[state]
  if (decide !== undefined) return decide(row, context)
  return context.isTooOld && !row.running ? stepTo(null, 'sync') : null
}

function stepTo(say: string | null, verb: 'sync' | 'resume' | null = null): Step {
  return {
    of: 'organizations',
    tell: (names) => ({ say, command: verb && `admin-mirror ${verb}${names}` }),
  }
}

function backfill(say: string | null, ...options: string[]): Step {
  return {
    of: 'lists',
    tell: (names) => ({
      say,
      command: [`admin-mirror backfill${names}`, ...options.map(shellWord)].join(' '),
    }),
  }
}

const LOOK_AND_ACCEPT: Step = {
  of: 'lists',
  tell: (names) => ({
    say: `see with admin-mirror verify${names} whether these rows really left the list (it writes nothing); only if they did, delete them`,
    command: `admin-mirror sync${names} --accept-removals`,
  }),
}
const WAIT = stepTo('wait: it is tried again by itself')

/** Runs that went on with a walk, and failed where they had begun. */
const STOPS = 2

function afterFailure(row: StatusRow, { isServed }: StepContext): Step {
  const { walk_page: page, walk_stops: stops, walk_total: total, walk_rows_seen: seen } = row
  if (row.running) return WAIT
  if (row.error_code === 'RATE_LIMITED' && row.waiting_until !== null) return syncOnceAllowed(row)
  // Where all that is left fits on it, nothing is listed behind it.
  const isLast = total !== null && seen !== null && total - seen <= seen / (row.walk_pages ?? 1)
  if (page !== null && stops >= STOPS && !isLast)
    return backfill(
      `page ${grouped(page)} failed in ${stops} runs, and the pages before it did not: until the API mends it, those behind it can be tried with`,
      '--from-page',
      String(page + 1),
    )
  const code = row.failing_code ?? ''
  if (!isErrorCode(code) || !ERRORS[code].passes) return goOn(row, 'look at the error, then')
  return isServed ? WAIT : goOn(row, 'when the API answers again')
}

/** No run sends anything before the time that the server asked for. */
function syncOnceAllowed({ waiting_until: until }: StatusRow): Step {
  return until === null ? stepTo(null, 'sync') : stepTo(`wait until ${until}, or forget the wait`, 'resume')
}

/** What goes on with the last run. A sync does not continue a backfill: of a list that was read whole, only that is left to do. */
function goOn(row: StatusRow, say: string | null = null): Step {
  if (row.last_run_trigger !== 'backfill' || row.walk_origin !== 'backfill' || row.as_of === null)
    return stepTo(say, 'sync')
  // A full backfill has the configured filters; typing them would make it partial.
  if (row.walk_kind !== 'partial') return backfill(say)
  const filters = Object.entries(JSON.parse(row.walk_filters ?? '{}') as Record<string, unknown>)
  const typedFilters = filters.flatMap(([name, value]) =>
    [value].flat().flatMap((one) => ['--filter', `${name}=${String(one)}`]),
  )
  const first = row.walk_first_page ?? 1
  return backfill(say, ...typedFilters, ...(first > 1 ? ['--from-page', String(first)] : []))
}

/** A list, as commands name it, and what to do about it. */
interface InNeed {
  list: Pick<StatusRow, 'organization' | 'collection'>
  step: Step | null
}

/** What somebody has to do about lists, each thing once, for all of those that need it. */
export function stepsOf(all: readonly InNeed[]): NextStep[] {
  const inNeed = all.flatMap(({ list, step }) =>
    step === null ? [] : [{ ...list, step, told: JSON.stringify(step.tell('')) }],
  )
  const byOrganization = Map.groupBy(inNeed, ({ organization, told }) => JSON.stringify([organization, told]))
  // One command is for the same lists of each organization: for more, it would do the same to lists that do not need it.
  const groups = Map.groupBy(inNeed, ({ step, organization, told }) => {
    const lists = byOrganization.get(JSON.stringify([organization, told])) ?? []
    return JSON.stringify([told, step.of === 'lists' && lists.map(({ collection }) => collection)])
  })
  const most = new Set(all.map(({ list }) => list.organization)).size
  const steps = Array.from(groups.values(), (group) => {
    const { step } = group[0] as (typeof inNeed)[number]
    const organizations = new Set(group.map(({ organization }) => organization))
    const collections = new Set(step.of === 'lists' ? group.map(({ collection }) => collection) : [])
    // A command for all names none.
    const isAll = step.of === 'organizations' && most > 1 && organizations.size === most
    return step.tell(
      (isAll ? '' : optionsOf('--org', organizations)) + optionsOf('--collection', collections),
    )
  })
  // What to look at before a command is said once with it.
  const isSaid = (command: string | null) =>
    steps.some((other) => other.say !== null && other.command === command)
  return steps.filter(({ say, command }) => say !== null || !isSaid(command))
}

function optionsOf(name: string, values: ReadonlySet<string>): string {
  return [...values].map((value) => ` ${name} ${shellWord(value)}`).join('')
}

/** What to do that is not about a list. */
export function stepsOfTheWhole(
  { unusable, unpublished, daemon }: Pick<Status, 'unusable' | 'unpublished' | 'daemon'>,
  isConfigLost: boolean,
): NextStep[] {
  const restart = restartText(daemon.processes)
  const steps = [
    unusable !== null && {
      say: 'mend what the first line says: a start that runs goes on by itself then, and what the mirror holds can be queried meanwhile',
      command: null,
    },
    unpublished !== null && {
      say: 'mend why nothing is published, as the note says: it is tried again after the next runs',
      command: null,
    },
    restart !== null && { say: restart, command: null },
    isConfigLost && {
      say: 'mend the configuration file, with which no command can begin',
      command: 'admin-mirror check',
    },
    daemon.running === false &&
      daemon.processes.length > 0 && {
        say: 'start the daemon again, by its service if it has one',
        command: 'admin-mirror start',
      },
  ]
  return steps.filter((step) => step !== false)
}

/** Null where no `start` has an older configuration. */
function restartText(processes: readonly DaemonProcess[]): string | null {
  const outdated = processes.filter((one) => one.outdated).map(({ pid }) => pid)
  return outdated.length === 0
    ? null
    : `restart start (process ${outdated.join(', ')}), by its service if it has one: it runs with another configuration than the file has now`
}
