import { listenWith } from '../happening.ts'
import { jobName } from '../traffic.ts'
import { createStock, type OracleContext, splitJob } from './context.ts'
import type { PageInHand, WalkRow } from './ledger.ts'

interface JobTimes {
  /** Of the last page that whoever has the job must know of: its own, a walk's, or that of a finished refresh. */
  last: string
  /** Of the last page of a refresh. */
  refreshed: string
}

/**
 * The times that pages are written with: now; but where the clock was set back, none is before a page of the job that is
 * known, and each page of a refresh is later than all of them.
 */
export function watchTimes({ wall, mirror, wasLockedSince, complain }: OracleContext) {
  const jobs = createStock((_job: string): JobTimes => ({ last: '', refreshed: '' }))
  const isoNow = () => new Date(wall.now()).toISOString()

  /** Nobody waited for the mirror, and no clock was set back: a page is written in the moment in which it comes. */
  function isExact({ came, request: { process } }: PageInHand): boolean {
    if (process.wasCut() || process.wasHalted()) return false
    return !wall.wasSet() && !wasLockedSince(came.at)
  }

  function judge(job: string, at: string, isLater: boolean): void {
    const { last } = jobs.of(job)
    if (at < last || (isLater && at === last))
      complain(`a page is written at ${at}, and one before it at ${last}`, job)
  }

  function ofWalk(inHand: PageInHand, { updated_at: at }: WalkRow): string {
    const { job } = inHand.request
    const known = jobs.of(job)
    judge(job, at, known.refreshed !== '' && known.refreshed === known.last)
    known.last = at
    return isExact(inHand) ? isoNow() : at
  }

  /** Null where it changed nothing, or nobody can tell. */
  function ofRefresh(inHand: PageInHand): string | null {
    const { job } = inHand.request
    const known = jobs.of(job)
    const at = isExact(inHand) ? isoNow() : writtenAt(inHand, known)
    if (at === null) return null
    judge(job, at, true)
    known.last = at
    known.refreshed = at
    return isExact(inHand) ? at : null
  }

  /**
   * The earliest time that its rows may have from it: none that is still to come, but for what is known already. Such rows are of a
   * refresh that was killed before the clock was set back.
   */
  function writtenAt({ request: { job }, page, came }: PageInHand, { last }: JobTimes): string | null {
    const [organization, collection] = splitJob(job)
    const at = mirror.value(
      `SELECT min(_changed_at) FROM ${collection}_raw
       WHERE _organization_id = ? AND id IN (SELECT value FROM json_each(?)) AND _changed_at > ? AND _changed_at >= ? AND _changed_at <= ?`,
      organization,
      JSON.stringify(page.items.map(({ id }) => id)),
      last,
      new Date(came.wall).toISOString(),
      [isoNow(), last === '' ? '' : new Date(Date.parse(last) + 1).toISOString()].toSorted().at(-1),
    )
    return typeof at === 'string' ? at : null
  }

  return {
    tell: listenWith({
      claimed({ job: { organization, collection } }) {
        // What a refresh wrote that was not finished, nobody knows the time of any more.
        const known = jobs.of(jobName(organization.id, collection.name))
        if (wall.wasSet()) known.last = ''
      },
    }),
    ofWalk,
    ofRefresh,
  }
}
