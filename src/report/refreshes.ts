import type { StatusRow } from '../store/core/status.ts'
import { counted, inWords, printable } from '../text.ts'

type RefreshedList = Pick<StatusRow, 'organization' | 'collection' | 'refreshed_every_ms' | 'refresh_share'>

/** What the part of a rate limit carries that refreshes of these lists may use, as of the last refresh of each. Empty while nothing is known. */
export function refreshText(lists: readonly RefreshedList[]): string[] {
  const times = lists.flatMap(({ refreshed_every_ms: every }) => (every === null ? [] : [every]))
  const share = Math.max(...lists.map(({ refresh_share: perMinute }) => perMinute ?? 0))
  const [first] = lists
  if (!first || times.length === 0 || share <= 0) return []
  const who =
    lists.length === 1
      ? `${printable(first.organization, 40)} ${first.collection} has`
      : `${counted(lists.length, 'list')} share`
  const [busiest, quietest] = [inWords(Math.min(...times)), inWords(Math.max(...times))]
  const ends = lists.length === 1 ? 'its newest end' : 'newest ends'
  const every = busiest === quietest ? busiest : `${busiest} to ${quietest}`
  const rate = Number(share.toPrecision(share < 10 ? 1 : 2))
  return [`${who} ${rate} requests a minute for refreshes: ${ends} every ${every}, the rest for older pages`]
}
