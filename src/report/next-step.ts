import type { OpenBackfill, StatusRow } from '../store/sqlite/read/status.ts'
import { shellWord } from '../text.ts'

/**
 * What somebody should type, or do, about a job; null when all is well, or a process is at work on it.
 * @param isTooOld Whether it is older than was asked for.
 */
export function nextStep(row: StatusRow, now: number, isTooOld = false): string | null {
  const org = shellWord(row.organization)
  const sync = `admin-mirror sync --org ${org}`
  if (row.held_since)
    return `give ${row.organization} a new token, or if it is valid again: admin-mirror resume --org ${org}`
  if (row.configured === 0 || row.running) return null
  if (row.last_run_at === null) return sync
  if (isToldToWait(row, now))
    return `wait until ${row.waiting_until}, or forget the wait: admin-mirror resume --org ${org}`
  if (row.last_run_status === 'failed') return `look at the error, then: ${afterFailure(row)}`
  if (row.running === false && row.walk_origin === 'sync') return sync
  if (isStopped(row)) return afterBackfill(row)
  if (row.removals_held > 0)
    return `look whether they are gone, then: ${sync} --collection ${shellWord(row.collection)} --accept-removals`
  if (row.total_is_wrong) return ignoreTotal(row)
  return row.as_of === null || isTooOld ? sync : null
}

/** A list whose total cannot be counted by: without a change of the configuration nothing is ever removed from it. */
function ignoreTotal({ organization, collection }: StatusRow): string {
  const sync = `admin-mirror sync --org ${shellWord(organization)} --collection ${shellWord(collection)}`
  return `the total of ${collection} cannot be counted by, so nothing that left the list is removed: set collections.${collection}.total: ignore in the configuration, then: ${sync}`
}

/** No run would send anything before the time that the server asked for. */
function isToldToWait({ error_code: code, waiting_until: until }: StatusRow, now: number): boolean {
  return code === 'RATE_LIMITED' && Date.parse(until ?? '') > now
}

type RunState = Pick<StatusRow, 'running' | 'last_run_status'>

/** The process of the last run was told to stop, or was killed and could not say so. */
export function isStopped({ running, last_run_status: status }: RunState): boolean {
  return status === 'interrupted' || (status === 'running' && running === false)
}

/** A sync goes on with no backfill: where the list is known whole, only the backfill itself is left to be done. */
function afterBackfill(row: StatusRow): string {
  const wantsSync = row.last_run_trigger !== 'backfill' || row.as_of === null
  return wantsSync ? `admin-mirror sync --org ${shellWord(row.organization)}` : backfillOfLastRun(row)
}

function backfillOfLastRun(row: StatusRow): string {
  const walk = row.backfills.find((backfill) => backfill.is_last_run)
  return walk ? backfillCommand(row, walk) : `admin-mirror sync --org ${shellWord(row.organization)}`
}

function afterFailure(row: StatusRow): string {
  if (row.last_run_trigger === 'backfill') return backfillOfLastRun(row)
  return `admin-mirror sync --org ${shellWord(row.organization)} --collection ${shellWord(row.collection)}`
}

/** The command that goes on with an interrupted backfill. */
export function backfillCommand(
  { organization, collection }: Pick<StatusRow, 'organization' | 'collection'>,
  { kind, filters, first_page: firstPage }: OpenBackfill,
): string {
  const words = ['admin-mirror', 'backfill', '--org', organization, '--collection', collection]
  // The filters of a full one are the configured ones; typed, they would make it partial.
  if (kind === 'partial') {
    for (const [name, value] of Object.entries(filters))
      for (const one of [value].flat()) words.push('--filter', `${name}=${String(one)}`)
    if (firstPage > 1) words.push('--from-page', String(firstPage))
  }
  return words.map(shellWord).join(' ')
}

/**
 * The command that tells what would go of a list, and how to have it go. By the UUID: an organization that left the
 * configuration may have the name of one that stands in it.
 */
export function forgetCommand({
  organization_id: id,
  collection,
}: Pick<StatusRow, 'organization_id' | 'collection'>): string {
  return `admin-mirror forget --org ${id} --collection ${shellWord(collection)}`
}
