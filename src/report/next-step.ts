import type { OpenBackfill, StatusRow } from '../store/core/status.ts'
import { printable, shellWord } from '../text.ts'

/** What is known of a job beside its row. */
interface StepContext {
  /** Whether it is older than `--max-age` or `--fresh` allows. */
  isTooOld?: boolean
  /** Whether it should have been read by now. */
  isOverdue?: boolean
  /** Where its token is; null if that is not known. */
  tokenPlace?: string | null
}

/** What to type or do about a job; null if there is nothing to do, or a process works on it and nothing is wrong. */
export function nextStep(
  row: StatusRow,
  now: number,
  { isTooOld = false, isOverdue = false, tokenPlace = null }: StepContext = {},
): string | null {
  const org = orgWord(row)
  const sync = syncCommand(row)
  if (row.held_since)
    return `give ${printable(row.organization, 80)} a new token${tokenPlace === null ? '' : ` (${printable(tokenPlace, 300)})`}, or if the old one is valid again: admin-mirror resume --org ${org}`
  if (row.configured === 0) return null
  if (row.removals_held > 0)
    return `check that these rows really left the list, then: ${syncListCommand(row)} --accept-removals`
  if (row.running) return whileRunning(row, isOverdue)
  if (row.last_run_at === null) return sync
  if (mustWait(row, now))
    return `wait until ${row.waiting_until}, or forget the wait: admin-mirror resume --org ${org}`
  if (row.failing_since !== null) return `look at the error, then: ${afterFailure(row)}`
  if (row.running === false && row.walk_origin === 'sync') return sync
  if (isStopped(row)) return afterBackfill(row)
  if (row.total_is_wrong) return ignoreTotal(row)
  return row.as_of === null || isTooOld || isOverdue ? sync : null
}

/** A run in progress may fix what is wrong, so there is nothing to type yet. */
function whileRunning({ failing_since: failingSince }: StatusRow, isOverdue: boolean): string | null {
  if (isOverdue)
    return 'look at the log of the process that is reading the list: it has written nothing for an hour'
  return failingSince === null
    ? null
    : 'wait for the run in progress to end, and look again: admin-mirror status'
}

/** With a wrong total, nothing is removed from a list until its configuration changes. */
function ignoreTotal(row: StatusRow): string {
  const { collection } = row
  return `the total of ${collection} cannot be relied on, so no row is removed: set collections.${collection}.total: ignore in the configuration, then: ${syncListCommand(row)}`
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
function afterBackfill(row: StatusRow): string {
  const wantsSync = row.last_run_trigger !== 'backfill' || row.as_of === null
  return wantsSync ? syncCommand(row) : backfillOfLastRun(row)
}

function backfillOfLastRun(row: StatusRow): string {
  const walk = row.backfills.find((backfill) => backfill.is_last_run)
  return walk ? backfillCommand(row, walk) : syncCommand(row)
}

function afterFailure(row: StatusRow): string {
  return row.last_run_trigger === 'backfill' ? backfillOfLastRun(row) : syncListCommand(row)
}

function syncCommand(row: StatusRow): string {
  return `admin-mirror sync --org ${orgWord(row)}`
}

/** A name with characters that only show as escapes cannot be pasted: then the UUID. */
function orgWord({ organization, organization_id: id }: Named): string {
  return printable(organization, organization.length) === organization ? shellWord(organization) : id
}

type Named = Pick<StatusRow, 'organization' | 'organization_id'>

function syncListCommand(row: StatusRow): string {
  return `${syncCommand(row)} --collection ${shellWord(row.collection)}`
}

/** The command that continues an interrupted backfill. */
export function backfillCommand(
  { collection, ...row }: Named & Pick<StatusRow, 'collection'>,
  { kind, filters, first_page: firstPage }: OpenBackfill,
): string {
  const words = ['--collection', collection]
  // A full backfill has the configured filters; typing them would make it partial.
  if (kind === 'partial') {
    for (const [name, value] of Object.entries(filters))
      for (const one of [value].flat()) words.push('--filter', `${name}=${String(one)}`)
    if (firstPage > 1) words.push('--from-page', String(firstPage))
  }
  return `admin-mirror backfill --org ${orgWord(row)} ${words.map(shellWord).join(' ')}`
}

/**
 * The command that shows what `forget` would delete of a list, and how. With the UUID: an organization that
 * left the configuration may have the name of a configured one.
 */
export function forgetCommand({
  organization_id: id,
  collection,
}: Pick<StatusRow, 'organization_id' | 'collection'>): string {
  return `admin-mirror forget --org ${id} --collection ${shellWord(collection)}`
}
