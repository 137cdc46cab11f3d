import type { StatusRow } from '../store/core/status.ts'
import { END_COST, isWalkedWhole, PER_PAGE } from '../sync/refresh/price.ts'
import { counted, inWords, printable } from '../text.ts'

type RefreshedList = Pick<
  StatusRow,
  'organization' | 'collection' | 'rows' | 'refreshed_every_ms' | 'refresh_share'
>

/**
 * How lists share the part of a rate limit that refreshes may use, as of the last refresh of each. Empty while nothing is known.
 */
export function refreshText(lists: readonly RefreshedList[]): string[] {
  const known = lists.flatMap(({ refreshed_every_ms: every, rows, refresh_share: share }) =>
    every === null || share === null ? [] : [{ every, share, requests: requestsOf(rows) }],
  )
  const times = known.map(({ every }) => every)
  const [first] = lists
  if (!first || known.length === 0) return []
  const share = Math.max(...known.map((one) => one.share))
  const newest = known.reduce((sum, { every, requests }) => sum + (requests * 60_000) / every, 0)
  const left = Math.round(100 * Math.max(0, 1 - newest / share))
  const older = Math.abs(left - 50) <= 5 ? 'half' : `${left} %`
  const [busiest, quietest] = [Math.min(...times), Math.max(...times)]
  const organizations = new Set(lists.map(({ organization }) => organization)).size
  const whose =
    organizations === 1 ? printable(first.organization, 40) : counted(organizations, 'organization')
  const who =
    lists.length === 1
      ? `${whose} ${first.collection} has`
      : `${counted(lists.length, 'list')} of ${whose} share`
  const looks =
    busiest === quietest
      ? `new rows are looked for every ${inWords(busiest)}`
      : `new rows of the busiest are looked for every ${inWords(busiest)}, of the quietest every ${inWords(quietest)}`
  const rate = Number(share.toPrecision(share < 10 ? 1 : 2))
  return [`${who} ${rate} requests a minute for refreshes: ${looks}; older pages get ${older} of it`]
}

/** Requests of a reading of the newest end; a short list is read whole. */
function requestsOf(rows: number): number {
  const lastPage = Math.max(1, Math.ceil(rows / PER_PAGE))
  return isWalkedWhole({ lastPage }) ? lastPage + 1 : END_COST
}
